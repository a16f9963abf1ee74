"""How endpoints are doing, kept beside the outcomes and in the same transaction."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from cuepost.adapters.storage.records.alerts import AlertRecords
from cuepost.adapters.storage.records.counts import TABLE
from cuepost.adapters.storage.session import StoreSession
from cuepost.adapters.storage.sql import Sql
from cuepost.domain.alert import Alert, AlertKind
from cuepost.domain.delivery import DeliveryStatus
from cuepost.domain.delivery_counts import FINE_MINUTES
from cuepost.domain.health import RECENT, Condition, Recent
from cuepost.domain.instants import instant_of
from cuepost.ports.dispatch import Lane, Result

# While nothing changes, the instants of the last attempts move no more often than this.
PRECISION = timedelta(seconds=1)
CONDITION = ("last_delivered_at", "last_failed_at", "troubled_since", "failing_since")


def _recent(column: str) -> str:
    """Read only where a delivery has failed, because nothing else depends on it."""
    return f"""
    CASE WHEN endpoints.number IN :spent THEN
        (SELECT coalesce(sum({TABLE}.{column}), 0) FROM {TABLE}
        JOIN accounts ON accounts.number = {TABLE}.account
        WHERE accounts.id = endpoints.account_id AND {TABLE}.endpoint = endpoints.number
            AND {TABLE}.minutes = {FINE_MINUTES} AND {TABLE}.since >= :recent)
    ELSE 0 END AS {column}
    """


# Whether an endpoint acknowledges without trouble: only its last acknowledgement changes.
_UNTROUBLED = """
(
    endpoints.number NOT IN :unsuccessful
    AND endpoints.troubled_since IS NULL
    AND endpoints.failing_since IS NULL
    AND (endpoints.last_delivered_at IS NULL OR endpoints.last_delivered_at <= :stale)
)
"""
# Locks only the endpoints whose health may change, in the order of ids as a fan-out does, to avoid
# deadlocks.
CHANGING = f"""
SELECT endpoints.number, {", ".join(f"endpoints.{name}" for name in CONDITION)},
    {_recent("delivered")}, {_recent("failed")}, {_UNTROUBLED} AS is_untroubled
FROM endpoints
WHERE endpoints.number IN :health_lanes
    AND (
        {_UNTROUBLED}
        OR (
            endpoints.number NOT IN :never_acknowledged
            AND (endpoints.troubled_since IS NOT NULL OR endpoints.failing_since IS NOT NULL)
        )
        OR (
            endpoints.number IN :unsuccessful
            AND (endpoints.troubled_since IS NULL OR endpoints.last_failed_at <= :stale)
        )
        OR (endpoints.number IN :spent AND endpoints.failing_since IS NULL)
    )
ORDER BY endpoints.id FOR NO KEY UPDATE OF endpoints
"""
COLUMNS = ("number", *CONDITION, "delivered", "failed")
ACKNOWLEDGE = Sql("UPDATE endpoints SET last_delivered_at = :now WHERE number IN :lanes")


class Remembered(NamedTuple):
    condition: Condition
    recent: Recent


def remembered(rows: Iterable[Sequence[Any]]) -> dict[Lane, Remembered]:
    """From the rows of `CHANGING`."""
    return {
        lane: Remembered(Condition(*instants), Recent(int(delivered), int(failed)))
        for lane, *instants, delivered, failed in rows
    }


def chosen_by(results: Sequence[Result], now: datetime) -> dict[str, Any]:
    """The parameters of these statements."""
    lanes: dict[bool, set[Lane]] = {True: set(), False: set()}
    spent: set[Lane] = set()
    for each in results:
        status, lane = each.next_step.status, each.assignment.lane
        lanes[status is DeliveryStatus.DELIVERED].add(lane)
        if status is DeliveryStatus.FAILED:
            spent.add(lane)
    return {
        "health_lanes": lanes[True] | lanes[False],
        "unsuccessful": lanes[False],
        "never_acknowledged": lanes[False] - lanes[True],
        "spent": spent,
        "now": now,
        "stale": now - PRECISION,
        "recent": now - RECENT,
    }


async def note(
    session: StoreSession,
    changing: Mapping[Lane, Remembered],
    results: Sequence[Result],
    now: datetime,
) -> None:
    """Results in the order in which their attempts ended."""
    ends = Counter((each.assignment.lane, each.next_step.status) for each in results)
    after: dict[Lane, Condition] = {}
    for each in results:
        lane = each.assignment.lane
        if lane in changing:
            before, recent = changing[lane]
            own = recent.plus(
                delivered=ends[lane, DeliveryStatus.DELIVERED],
                failed=ends[lane, DeliveryStatus.FAILED],
            )
            was = after.get(lane, before)
            after[lane] = _after(was, each, own, now)
            await _note_alert(session, each, was, after[lane])
    await session.update(
        "endpoints",
        ("number",),
        [
            {"number": lane} | {name: getattr(found, name) for name in CONDITION}
            for lane, found in after.items()
        ],
    )


async def _note_alert(
    session: StoreSession, result: Result, before: Condition, after: Condition
) -> None:
    """With the change of health itself, so that none is lost or noted twice."""
    if (before.failing_since is None) == (after.failing_since is None):
        return
    target, alerts = result.assignment.target, AlertRecords(session)
    which = (target.account_id, target.webhook_id, AlertKind.FAILING)
    if after.failing_since is not None:
        await alerts.open(Alert(*which, after.failing_since))
    elif after.last_delivered_at is not None:
        await alerts.end(*which, after.last_delivered_at)


def _after(before: Condition, result: Result, recent: Recent, now: datetime) -> Condition:
    status = result.next_step.status
    if status is DeliveryStatus.DELIVERED:
        return before.acknowledged(now)
    if status is DeliveryStatus.FAILED:
        began_at = instant_of(result.assignment.delivery_id)
        return before.delivery_failed(began_at, recent, now)
    return before.attempt_failed(now)
