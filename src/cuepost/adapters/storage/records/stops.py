"""Stops deliveries: waiting ones end at once, those in flight after their attempt."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from cuepost.adapters.storage.codes import STATUS
from cuepost.adapters.storage.columns import IN_FLIGHT, WAITING
from cuepost.adapters.storage.records.counts import Tally
from cuepost.adapters.storage.records.delivery_pages import LIVE_OF_EVENTS, of_events
from cuepost.adapters.storage.records.delivery_rows import KEPT
from cuepost.adapters.storage.session import StoreSession
from cuepost.adapters.storage.sql import Sql
from cuepost.domain.delivery import CancelReason, DeliveryStatus

STOPPED_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class Stop:
    """Statements for deliveries of an account, of an endpoint, or with certain ids."""

    lock: Sql
    mark: Sql
    some: Sql


def _stop_of(chosen: str) -> Stop:
    waiting, in_flight = f"{WAITING} AND {chosen}", f"{IN_FLIGHT} AND {chosen}"
    both = f"SELECT id FROM queue WHERE {waiting} OR {in_flight} ORDER BY id FOR UPDATE"
    return Stop(
        lock=Sql(
            # There is only one writer, so nothing has to be locked.
            sqlite="SELECT 0 AS count",
            postgresql=f"SELECT count(*) AS count FROM ({both}) AS locked",
        ),
        mark=Sql(f"UPDATE queue SET stop_reason = :why WHERE {in_flight}"),
        some=Sql(f"SELECT id FROM queue WHERE {waiting} LIMIT {STOPPED_AT_ONCE}"),
    )


_BY_IDS = "account = :account AND id IN :ids"
OF_ACCOUNT = _stop_of("account = :account")
OF_ENDPOINT = _stop_of("account = :account AND endpoint = :endpoint")
_THESE = _stop_of(_BY_IDS)
_KEPT = ", ".join(KEPT)
_CANCEL = Sql(
    f"""
    INSERT INTO deliveries ({_KEPT}, status, reason, finished_at)
    SELECT {_KEPT}, {STATUS[DeliveryStatus.CANCELLED]}, :why::smallint, :at::timestamptz
    FROM queue WHERE {_BY_IDS}
    """
)
_UNQUEUE = Sql(f"DELETE FROM queue WHERE {_BY_IDS} RETURNING endpoint, id, attempt_count")
_EVENTS_OF_PROJECT = Sql("SELECT id FROM events WHERE account = :account AND project_id = :project")
_ACCESS_ENDED = Sql(
    """
    UPDATE projects SET access_ended_at = :at
    WHERE account_id = :account AND id = :project AND access_expires_at <= :at
    """
)


async def stop(
    session: StoreSession, which: Stop, reason: CancelReason, now: datetime, **chosen: Any
) -> None:
    """`chosen` has the account, and the endpoint or the ids."""
    session = session.offloaded
    # Locks all first, in the order of ids, so that no worker claims one in between.
    await session.fetch(which.lock, **chosen)
    await session.execute(which.mark, why=reason, **chosen)
    tally = Tally()
    while rows := await session.fetch(which.some, **chosen):
        ids = [delivery_id for (delivery_id,) in rows]
        await cancel(session, chosen["account"], ids, reason, now, tally=tally)
    await tally.write(session)


async def cancel(
    session: StoreSession,
    account: int,
    ids: Sequence[UUID],
    reason: CancelReason,
    now: datetime,
    *,
    tally: Tally,
) -> None:
    """These end now, whether or not a worker is sending them; they are counted in the tally."""
    await session.execute(_CANCEL, account=account, ids=ids, why=reason, at=now)
    for endpoint, each, attempts in await session.fetch(_UNQUEUE, account=account, ids=ids):
        tally.ended(account, endpoint, each, DeliveryStatus.CANCELLED, attempts)


async def add_ended(session: StoreSession, ended: Sequence[dict[str, Any]]) -> None:
    """Adds deliveries that ended without an attempt, and counts them."""
    await session.insert("deliveries", ended)
    tally = Tally()
    for row in ended:
        which = row["account"], row["endpoint"], row["id"]
        tally.ended(*which, row["status"], row["attempt_count"])
    await tally.write(session)


async def stop_project(
    session: StoreSession, account: int, project_id: UUID, reason: CancelReason, now: datetime
) -> None:
    ids = await _live_of_project(session.offloaded, account, project_id)
    if ids:
        await stop(session, _THESE, reason, now, account=account, ids=ids)


async def access_ended(
    session: StoreSession, account_id: UUID, project_id: UUID, now: datetime
) -> bool:
    """Marks the end as processed; False if the access window was extended in between.

    Called first, because it waits for running milestone reports of the project.
    """
    noted = await session.execute(_ACCESS_ENDED, account=account_id, project=project_id, at=now)
    return noted > 0


async def _live_of_project(session: StoreSession, account: int, project_id: UUID) -> Sequence[UUID]:
    """Found through its events, which are few."""
    found = await session.fetch(_EVENTS_OF_PROJECT, account=account, project=project_id)
    event_ids = [event_id for (event_id,) in found]
    if not event_ids:
        return []
    live = await session.fetch(LIVE_OF_EVENTS, **of_events(account, event_ids))
    return [delivery_id for delivery_id, *_ in live]
