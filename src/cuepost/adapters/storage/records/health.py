"""How endpoints are doing, kept beside the outcomes and in the same transaction."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeAlias

import sqlalchemy as sa

from cuepost.adapters.storage.session import Session
from cuepost.adapters.storage.statements import Among
from cuepost.adapters.storage.tables import endpoints
from cuepost.adapters.storage.types import Instant
from cuepost.domain.delivery import DeliveryStatus
from cuepost.ports.dispatch import Lane, Result

Health: TypeAlias = tuple[datetime | None, datetime | None]
# While all goes well, the instant of the last delivery moves no more often than this.
PRECISION = timedelta(seconds=1)

_IS_STALE = sa.or_(
    endpoints.c.failing_since.is_not(None),
    endpoints.c.last_delivered_at.is_(None),
    endpoints.c.last_delivered_at <= sa.bindparam("stale", type_=Instant),
)


def changing() -> sa.Select[Any]:
    """The endpoints whose health may change, and they alone, locked.

    In the order of ids, as for a fan-out: nobody deadlocks.
    """
    return (
        sa.select(endpoints.c.number, endpoints.c.last_delivered_at, endpoints.c.failing_since)
        .where(
            Among(endpoints.c.number, "health_lanes"),
            sa.or_(_IS_STALE, Among(endpoints.c.number, "failed")),
        )
        .order_by(endpoints.c.id)
        .with_for_update(key_share=True, of=endpoints)
    )


def chosen_by(results: Sequence[Result], now: datetime) -> dict[str, Any]:
    """The parameters of `changing`."""
    delivered = _lanes(results, DeliveryStatus.DELIVERED)
    failed = _lanes(results, DeliveryStatus.FAILED)
    return {
        "health_lanes": list(delivered | failed),
        "failed": list(failed),
        "stale": now - PRECISION,
    }


async def note(
    session: Session, changing: Mapping[Lane, Health], results: Sequence[Result], now: datetime
) -> None:
    """Results in the order in which their attempts ended."""
    state: dict[Lane, Health] = {}
    for each in results:
        lane = each.assignment.lane
        if lane in changing:
            state[lane] = _after(each.verdict.status, *state.get(lane, changing[lane]), now)
    await session.update(
        endpoints,
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
    return {each.assignment.lane for each in results if each.verdict.status is status}
