"""How endpoints are doing, kept beside the outcomes and in the same transaction."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeAlias
from uuid import UUID

import sqlalchemy as sa

from cuepost.adapters.storage.session import Session
from cuepost.adapters.storage.statements import Pairs, Prepared
from cuepost.adapters.storage.tables import endpoints
from cuepost.domain.delivery import DeliveryStatus
from cuepost.ports.dispatch import Result

Key: TypeAlias = tuple[UUID, UUID]
Health: TypeAlias = tuple[datetime | None, datetime | None]
# While all goes well, the instant of the last delivery moves no more often than this.
PRECISION = timedelta(seconds=1)


_HEALTH = sa.select(
    endpoints.c.account_id,
    endpoints.c.id,
    endpoints.c.last_delivered_at,
    endpoints.c.failing_since,
).where(Pairs((endpoints.c.account_id, endpoints.c.id), "accounts", "webhooks"))
_SEEN = Prepared(_HEALTH)
# In the order of ids, as for a fan-out: nobody deadlocks.
_LOCKED = Prepared(_HEALTH.order_by(endpoints.c.id).with_for_update(key_share=True))


@dataclass(frozen=True, slots=True)
class HealthRecords:
    """The endpoints whose health these results change; locked, and written by `note`."""

    session: Session
    now: datetime
    _held: dict[Key, Health] = field(default_factory=dict)

    async def hold(self, results: Sequence[Result]) -> "HealthRecords":
        """Before the queue is locked: whoever disables an endpoint locks in this order too."""
        delivered = _endpoints(results, DeliveryStatus.DELIVERED)
        failed = _endpoints(results, DeliveryStatus.FAILED)
        seen = await self._rows(_SEEN, delivered | failed)
        changing = {
            key
            for key, (last_delivered_at, failing_since) in seen.items()
            if (key in failed and failing_since is None)
            or (key in delivered and self._moves(last_delivered_at, failing_since))
        }
        self._held.update(await self._rows(_LOCKED, changing))
        return self

    async def note(self, results: Sequence[Result]) -> None:
        """Results in the order in which their attempts ended."""
        state = dict(self._held)
        for each in results:
            key = (each.assignment.account_id, each.assignment.webhook_id)
            if key in state:
                state[key] = _after(each.verdict.status, *state[key], self.now)
        await self.session.update(
            endpoints,
            ("account_id", "id"),
            [
                {"account_id": account_id, "id": webhook_id}
                | {"last_delivered_at": last_delivered_at, "failing_since": failing_since}
                for (account_id, webhook_id), (last_delivered_at, failing_since) in state.items()
            ],
        )

    def _moves(self, last_delivered_at: datetime | None, failing_since: datetime | None) -> bool:
        if failing_since is not None or last_delivered_at is None:
            return True
        return self.now - last_delivered_at >= PRECISION

    async def _rows(self, statement: Prepared, keys: Collection[Key]) -> dict[Key, Health]:
        if not keys:
            return {}
        accounts, webhooks = zip(*keys, strict=True)
        rows = await self.session.fetch(statement, accounts=accounts, webhooks=webhooks)
        return {(account, webhook): (last, since) for account, webhook, last, since in rows}


def _after(
    status: DeliveryStatus,
    last_delivered_at: datetime | None,
    failing_since: datetime | None,
    now: datetime,
) -> tuple[datetime | None, datetime | None]:
    if status is DeliveryStatus.DELIVERED:
        return now, None
    if status is DeliveryStatus.FAILED:
        return last_delivered_at, failing_since or now
    return last_delivered_at, failing_since


def _endpoints(results: Sequence[Result], status: DeliveryStatus) -> set[Key]:
    return {
        (each.assignment.account_id, each.assignment.webhook_id)
        for each in results
        if each.verdict.status is status
    }
