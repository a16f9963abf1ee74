"""The health of endpoints, updated in the same transaction as the outcomes."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from cuepost.adapters.storage.session import StoreSession
from cuepost.domain.delivery import DeliveryStatus
from cuepost.ports.dispatch import Lane, Result

Health: TypeAlias = tuple[datetime | None, datetime | None]
# The time of the last delivery of a healthy endpoint is updated at most this often.
PRECISION = timedelta(seconds=1)

# Locks only the endpoints whose health may change, in the order of ids as a fan-out does, to avoid
# deadlocks.
CHANGING = """
SELECT endpoints.number, endpoints.last_delivered_at, endpoints.failing_since
FROM endpoints
WHERE endpoints.number IN :health_lanes
    AND (
        endpoints.failing_since IS NOT NULL
        OR endpoints.last_delivered_at IS NULL
        OR endpoints.last_delivered_at <= :stale
        OR endpoints.number IN :failed
    )
ORDER BY endpoints.id FOR NO KEY UPDATE OF endpoints
"""


def chosen_by(results: Sequence[Result], now: datetime) -> dict[str, Any]:
    """The parameters of `CHANGING`."""
    delivered = _lanes(results, DeliveryStatus.DELIVERED)
    failed = _lanes(results, DeliveryStatus.FAILED)
    return {
        "health_lanes": delivered | failed,
        "failed": failed,
        "stale": now - PRECISION,
    }


async def note(
    session: StoreSession, changing: Mapping[Lane, Health], results: Sequence[Result], now: datetime
) -> None:
    """`results` are in the order in which their attempts ended."""
    state: dict[Lane, Health] = {}
    for each in results:
        lane = each.assignment.lane
        if lane in changing:
            state[lane] = _after(each.next_step.status, *state.get(lane, changing[lane]), now)
    await session.update(
        "endpoints",
        ("number",),
        [
            {"number": lane, "last_delivered_at": last, "failing_since": since}
            for lane, (last, since) in state.items()
        ],
    )


def _after(
    status: DeliveryStatus,
    last_delivered_at: datetime | None,
    failing_since: datetime | None,
    now: datetime,
) -> Health:
    if status is DeliveryStatus.DELIVERED:
        return now, None
    if status is DeliveryStatus.FAILED:
        return last_delivered_at, failing_since or now
    return last_delivered_at, failing_since


def _lanes(results: Sequence[Result], status: DeliveryStatus) -> set[Lane]:
    return {each.assignment.lane for each in results if each.next_step.status is status}
