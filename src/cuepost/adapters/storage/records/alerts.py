"""Alerts of endpoints, and e-mails about them that are still to be sent."""

from collections.abc import Sequence
from dataclasses import asdict, fields
from datetime import datetime
from typing import Any
from uuid import UUID

from cuepost.adapters.storage.codes import STATUS
from cuepost.adapters.storage.columns import WAITING
from cuepost.adapters.storage.records.claim_statements import LANES_BEHIND, STATES
from cuepost.adapters.storage.session import Records
from cuepost.adapters.storage.sql import Sql
from cuepost.domain.alert import ENDED, Alert, AlertKind, AlertMail
from cuepost.ports.dispatch import BEGINNING

LANES_WALKED = 1_000
_FIELDS = tuple(field.name for field in fields(Alert))
_COLUMNS = ", ".join(f"alerts.{name}" for name in _FIELDS)
_ALERTS = f"SELECT {_COLUMNS} FROM alerts"
_IS_OPEN = "alerts.finished_at IS NULL"
_OPEN = Sql(
    f"""
    INSERT INTO alerts ({", ".join(_FIELDS)})
    VALUES ({", ".join(f":{name}" for name in _FIELDS)}) ON CONFLICT DO NOTHING
    """
)
_END = Sql(
    f"""
    UPDATE alerts SET finished_at = :now, changes = :changes
    WHERE account_id = :account_id AND webhook_id = :webhook_id AND kind = :kind AND {_IS_OPEN}
    """
)
_END_SILENTLY = Sql(
    f"""
    UPDATE alerts SET finished_at = :now
    WHERE account_id = :account_id AND webhook_id = :webhook_id AND kind = :kind AND {_IS_OPEN}
    """
)
_OF_ACCOUNT = Sql(f"{_ALERTS} WHERE account_id = :account_id AND {_IS_OPEN} ORDER BY since")
_PERHAPS_OVER = Sql(
    f"""
    {_ALERTS}
    JOIN endpoints
        ON endpoints.account_id = alerts.account_id AND endpoints.id = alerts.webhook_id
    WHERE {_IS_OPEN} AND alerts.kind = '{AlertKind.FAILING}'
        AND (
            NOT endpoints.enabled
            OR (endpoints.troubled_since IS NULL AND endpoints.last_failed_at <= :quiet_since)
        )
    LIMIT :most
    """
)


def _earliest(lane: str) -> str:
    """When the delivery of a lane was due that has waited longest."""
    of_states = " UNION ALL ".join(
        f"""
        SELECT * FROM (
            SELECT queue.due_at FROM queue
            WHERE {WAITING} AND queue.endpoint = {lane} AND queue.status = {STATUS[state]}
            ORDER BY queue.due_at LIMIT 1
        ) AS of_state
        """
        for state in STATES
    )
    return f"(SELECT min(due_at) FROM ({of_states}) AS earliest)"


_BACKLOGS = Sql(
    f"""
    {LANES_BEHIND}
    SELECT endpoints.account_id, endpoints.id, waiting.due_at
    FROM (
        SELECT walked.endpoint, {_earliest("walked.endpoint")} AS due_at
        FROM (SELECT endpoint FROM lane WHERE endpoint IS NOT NULL LIMIT {LANES_WALKED}) AS walked
    ) AS waiting
    JOIN endpoints ON endpoints.number = waiting.endpoint
    WHERE waiting.due_at <= :due_before AND NOT EXISTS (
        SELECT 1 FROM alerts
        WHERE alerts.account_id = endpoints.account_id AND alerts.webhook_id = endpoints.id
            AND alerts.kind = '{AlertKind.BACKLOG}' AND {_IS_OPEN}
    )
    LIMIT :most
    """
)
_BACKLOGS_OVER = Sql(
    f"""
    {_ALERTS}
    JOIN endpoints
        ON endpoints.account_id = alerts.account_id AND endpoints.id = alerts.webhook_id
    WHERE {_IS_OPEN} AND alerts.kind = '{AlertKind.BACKLOG}'
        AND coalesce({_earliest("endpoints.number")} > :due_before, true)
    LIMIT :most
    """
)
_UNANNOUNCED = f"{_ALERTS} WHERE alerts.announced < alerts.changes"
_ANY_UNANNOUNCED = Sql(f"{_UNANNOUNCED} LIMIT 1")
_SOME_UNANNOUNCED = Sql(
    f"{_UNANNOUNCED} ORDER BY alerts.since LIMIT :most FOR UPDATE OF alerts SKIP LOCKED"
)
KEY = ("account_id", "webhook_id", "kind", "since")
MAIL_KEY = (*KEY, "number", "user_id")
_MAIL = ", ".join(field.name for field in fields(AlertMail))
_DUE = f"SELECT {_MAIL} FROM alert_mails WHERE due_at <= :now"
_ANY_DUE = Sql(f"{_DUE} LIMIT 1")
_SOME_DUE = Sql(f"{_DUE} ORDER BY due_at LIMIT :most FOR UPDATE SKIP LOCKED")
_ITS = "WHERE account_id = :account AND webhook_id = :webhook"
CLEAR_ENDPOINT = (
    Sql(f"DELETE FROM alert_mails {_ITS}"),
    Sql(f"DELETE FROM alerts {_ITS}"),
)


class AlertRecords(Records):
    async def open(self, alert: Alert) -> None:
        await self._session.execute(_OPEN, **_row(alert))

    async def end(
        self,
        account_id: UUID,
        webhook_id: UUID,
        kind: AlertKind,
        now: datetime,
        *,
        silently: bool = False,
    ) -> None:
        which = {"account_id": account_id, "webhook_id": webhook_id, "kind": kind.value}
        statement = _END_SILENTLY if silently else _END
        await self._session.execute(statement, **which, now=now, changes=ENDED)

    async def of_account(self, account_id: UUID) -> list[Alert]:
        return _alerts(await self._session.fetch(_OF_ACCOUNT, account_id=account_id))

    async def perhaps_over(self, quiet_since: datetime, limit: int) -> list[Alert]:
        return _alerts(
            await self._session.fetch(_PERHAPS_OVER, quiet_since=quiet_since, most=limit)
        )

    async def backlogs(self, due_before: datetime, limit: int) -> list[Alert]:
        rows = await self._session.offloaded.fetch(
            _BACKLOGS, behind=BEGINNING, due_before=due_before, most=limit
        )
        return [
            Alert(account_id, webhook_id, AlertKind.BACKLOG, due_at)
            for account_id, webhook_id, due_at in rows
        ]

    async def backlogs_over(self, due_before: datetime, limit: int) -> list[Alert]:
        return _alerts(await self._session.fetch(_BACKLOGS_OVER, due_before=due_before, most=limit))

    async def has_unannounced(self) -> bool:
        return bool(await self._session.fetch(_ANY_UNANNOUNCED))

    async def unannounced(self, limit: int) -> list[Alert]:
        return _alerts(await self._session.fetch(_SOME_UNANNOUNCED, most=limit))

    async def save_announced(self, alert: Alert) -> None:
        row = {name: value for name, value in _row(alert).items() if name in KEY}
        await self._session.update("alerts", KEY, [row | {"announced": alert.announced}])

    async def add_mails(self, mails: Sequence[AlertMail]) -> None:
        await self._session.insert("alert_mails", [_row(each) for each in mails])

    async def has_due_mails(self, now: datetime) -> bool:
        return bool(await self._session.fetch(_ANY_DUE, now=now))

    async def due_mails(self, now: datetime, limit: int) -> list[AlertMail]:
        rows = await self._session.fetch(_SOME_DUE, now=now, most=limit)
        return [
            AlertMail(account_id, webhook_id, AlertKind(kind), *others)
            for account_id, webhook_id, kind, *others in rows
        ]

    async def postpone_mail(self, mail: AlertMail) -> None:
        await self._session.update("alert_mails", MAIL_KEY, [_row(mail)])

    async def drop_mail(self, mail: AlertMail) -> None:
        row = _row(mail)
        await self._session.delete(
            "alert_mails", MAIL_KEY, [{name: row[name] for name in MAIL_KEY}]
        )


def _row(made: Alert | AlertMail) -> dict[str, Any]:
    return asdict(made) | {"kind": made.kind.value}


def _alerts(rows: Sequence[Sequence[Any]]) -> list[Alert]:
    return [
        Alert(account_id, webhook_id, AlertKind(kind), *others)
        for account_id, webhook_id, kind, *others in rows
    ]
