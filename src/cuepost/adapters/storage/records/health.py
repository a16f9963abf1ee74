"""How endpoints are doing, kept beside the outcomes and in the same transaction."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeAlias
from uuid import UUID

import sqlalchemy as sa

from cuepost.adapters.storage.session import Session
from cuepost.adapters.storage.statements import Among, AmongPairs
from cuepost.adapters.storage.tables import endpoints
from cuepost.adapters.storage.types import Instant
from cuepost.domain.delivery import DeliveryStatus
from cuepost.ports.dispatch import Result

Health: TypeAlias = tuple[datetime | None, datetime | None]
# While all goes well, the instant of the last delivery moves no more often than this.
PRECISION = timedelta(seconds=1)

_IS_STALE = sa.or_(
    endpoints.c.failing_since.is_not(None),
    endpoints.c.last_delivered_at.is_(None),
    endpoints.c.last_delivered_at <= sa.bindparam("stale", type_=Instant),
)


def changing(among: AmongPairs) -> sa.Select[Any]:
    """The endpoints whose health may change, and they alone, locked.

    In the order of ids, as for a fan-out: nobody deadlocks.
    """
    key = (endpoints.c.account_id, endpoints.c.id)
    are_chosen = among(key, "health_accounts", "health_webhooks")
    return (
        sa.select(endpoints.c.id, endpoints.c.last_delivered_at, endpoints.c.failing_since)
        .where(are_chosen, sa.or_(_IS_STALE, Among(endpoints.c.id, "failed")))
        .order_by(endpoints.c.id)
        .with_for_update(key_share=True, of=endpoints)
    )


def chosen_by(results: Sequence[Result], now: datetime) -> dict[str, Any]:
    """The parameters of `changing`."""
    delivered = _endpoints(results, DeliveryStatus.DELIVERED)
    failed = _endpoints(results, DeliveryStatus.FAILED)
    accounts = delivered | failed
    return {
        "health_accounts": list(accounts.values()),
        "health_webhooks": list(accounts),
        "failed": list(failed),
        "stale": now - PRECISION,
    }


async def note(
    session: Session, changing: Mapping[UUID, Health], results: Sequence[Result], now: datetime
) -> None:
    """Results in the order in which their attempts ended."""
    state = dict(changing)
    account_of: dict[UUID, UUID] = {}
    for each in results:
        webhook_id = each.assignment.webhook_id
        if webhook_id in state:
            account_of[webhook_id] = each.assignment.account_id
            state[webhook_id] = _after(each.verdict.status, *state[webhook_id], now)
    await session.update(
        endpoints,
        ("account_id", "id"),
        [
            {
                "account_id": account_id,
                "id": webhook_id,
                "last_delivered_at": state[webhook_id][0],
                "failing_since": state[webhook_id][1],
            }
            for webhook_id, account_id in account_of.items()
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


def _endpoints(results: Sequence[Result], status: DeliveryStatus) -> dict[UUID, UUID]:
    """Their accounts."""
    return {
        each.assignment.webhook_id: each.assignment.account_id
        for each in results
        if each.verdict.status is status
    }
