"""The queue: workers, the lanes they hold, and what they give back."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import sqlalchemy as sa

from cuepost.adapters.storage.records import stops
from cuepost.adapters.storage.records.attempts import add_uncounted
from cuepost.adapters.storage.records.claim_statements import EARLIEST
from cuepost.adapters.storage.records.claims import Claims
from cuepost.adapters.storage.records.handed_over import handed_over
from cuepost.adapters.storage.session import Session, upsert
from cuepost.adapters.storage.statements import Among, Prepared
from cuepost.adapters.storage.tables import IN_FLIGHT, accounts, lanes, queue, workers
from cuepost.adapters.storage.types import Instant
from cuepost.domain.attempt import Attempt, interrupted, trigger_of
from cuepost.domain.delivery import CancelReason, DeliveryStatus, Trigger
from cuepost.ports.dispatch import Assignment, Claim, Claimed, DeliveryKey, Lane

WORK_CHANNEL = "cuepost_work"
_QUEUE_KEY = ("account", "id")


class _Held(NamedTuple):
    """A delivery that a worker has, as its row in the queue says."""

    account: int
    id: UUID
    stop_reason: CancelReason | None
    attempts_made: int
    trigger: Trigger
    worker: UUID | None

    def interrupted(self, account_id: UUID, now: datetime) -> Attempt:
        trigger = trigger_of(self.trigger, self.attempts_made + 1)
        return interrupted(account_id, self.id, trigger, now)


def _unknown() -> sa.Select[Any]:
    """Who holds leases and is not among the workers: dismissed in the moment in which it committed.

    From one holder to the next by the index, because there are few of them in a queue that may be
    long.
    """

    def lowest(*behind: sa.ColumnElement[bool]) -> sa.ScalarSelect[Any]:
        leases = sa.select(queue.c.worker).where(IN_FLIGHT, *behind)
        return leases.order_by(queue.c.worker).limit(1).scalar_subquery()

    holders = sa.select(lowest().label("worker")).cte("holders", recursive=True)
    following = lowest(queue.c.worker > holders.c.worker)
    holders = holders.union_all(sa.select(following).where(holders.c.worker.is_not(None)))
    is_known = holders.c.worker.in_(sa.select(workers.c.id))
    return sa.select(holders.c.worker).where(holders.c.worker.is_not(None), ~is_known)


_NOW = sa.bindparam("now", type_=Instant)
_STAY = Prepared(
    sa.update(workers)
    .where(workers.c.id == sa.bindparam("worker"))
    .values(alive_until=sa.bindparam("until", type_=Instant))
    .returning(workers.c.id)
)
_DEAD = Prepared(
    sa.select(workers.c.id).where(workers.c.alive_until <= _NOW).with_for_update(skip_locked=True)
)
_UNKNOWN = Prepared(_unknown())
_LEASED = Prepared(sa.select(queue.c.id).where(queue.c.worker == sa.bindparam("worker")))
_LIVING = Prepared(
    sa.select(workers.c.id)
    .where(workers.c.alive_until > _NOW, ~workers.c.leaving)
    .order_by(workers.c.id)
)
# On PostgreSQL: an announcement without lanes says that workers have come or gone.
_WORKERS_CHANGED = Prepared(
    sa.text("SELECT pg_notify(:channel, '')").bindparams(
        sa.bindparam("channel", WORK_CHANNEL, type_=sa.Text())
    )
)
_LOCKED = (
    sa.select(*(queue.c[name] for name in _Held._fields))
    .where(IN_FLIGHT)
    .order_by(queue.c.id)
    .with_for_update()
)
_OF_GONE = Prepared(_LOCKED.where(Among(queue.c.worker, "gone")))
_OF_WORKER = Prepared(
    _LOCKED.where(queue.c.worker == sa.bindparam("worker"), Among(queue.c.id, "deliveries"))
)
_OTHERS = Prepared(
    sa.select(lanes.c.endpoint).where(
        Among(lanes.c.endpoint, "lanes"), lanes.c.worker_id != sa.bindparam("worker")
    )
)
_ACCEPT = Prepared(
    sa.update(lanes)
    .where(lanes.c.worker_id == sa.bindparam("worker"), Among(lanes.c.endpoint, "lanes"))
    .values(accepts=sa.bindparam("accepts", type_=sa.Boolean))
)
_OWNERS = Prepared(
    sa.select(accounts.c.number, accounts.c.id).where(Among(accounts.c.number, "numbers"))
)
_CLEAR_LANES = Prepared(sa.delete(lanes).where(Among(lanes.c.worker_id, "gone")))
_CLEAR_WORKERS = Prepared(sa.delete(workers).where(Among(workers.c.id, "gone")))


class QueueRecords:
    def __init__(self, session: Session) -> None:
        self._session = session

    async def enlist(self, worker: UUID, until: datetime) -> None:
        await self._session.run(
            upsert(self._session, workers)
            .values(id=worker, alive_until=until)
            .on_conflict_do_update(index_elements=["id"], set_={"alive_until": until})
        )
        await self._tell_workers()

    async def stay(self, worker: UUID, until: datetime) -> bool:
        return bool(await self._session.fetch(_STAY, worker=worker, until=until))

    async def leave(self, worker: UUID, busy: Collection[Lane]) -> None:
        own = lanes.c.worker_id == worker
        await self._session.run(
            sa.update(workers).where(workers.c.id == worker).values(leaving=True)
        )
        await self._session.run(sa.delete(lanes).where(own, lanes.c.endpoint.not_in(busy)))
        await self._session.run(sa.update(lanes).where(own).values(accepts=False))
        await self._tell_workers()

    async def dismiss(self, worker: UUID, now: datetime) -> None:
        await self._dismiss([worker], now)

    async def dismiss_all(self) -> None:
        """Their leases are left to `dismiss_dead`, as those of workers that nobody knows."""
        await self._session.run(sa.delete(lanes))
        await self._session.run(sa.delete(workers))

    async def dismiss_dead(self, now: datetime) -> int:
        dead = await self._session.fetch(_DEAD, now=now)
        unknown = await self._session.fetch(_UNKNOWN)
        await self._dismiss([worker for (worker,) in (*dead, *unknown)], now)
        return len(dead) + len(unknown)

    async def leased(self, worker: UUID) -> Collection[UUID]:
        rows = await self._session.fetch(_LEASED, worker=worker)
        return [delivery_id for (delivery_id,) in rows]

    async def put_back(
        self,
        worker: UUID,
        delivery_ids: Collection[UUID],
        now: datetime,
        due_at: datetime | None,
        *,
        may_be_sent: bool,
    ) -> None:
        if not delivery_ids:
            return
        rows = await self._session.fetch(_OF_WORKER, worker=worker, deliveries=list(delivery_ids))
        held = [_Held._make(row) for row in rows]
        if may_be_sent:
            # Their worker knows that no result will come.
            await self._interrupt([each._replace(worker=None) for each in held], now)
        await self._release(held, now, {} if due_at is None else {"due_at": due_at})

    async def claim(self, wanted: Claim, now: datetime) -> Claimed:
        return await Claims(self._session).claim(wanted, now)

    async def accept(
        self, worker: UUID, opened: Collection[Lane], closed: Collection[Lane]
    ) -> None:
        for chosen, accepts in ((opened, True), (closed, False)):
            if chosen:
                await self._session.fetch(
                    _ACCEPT, worker=worker, lanes=list(chosen), accepts=accepts
                )

    async def handed_over(
        self, worker: UUID, keys: Sequence[DeliveryKey], now: datetime
    ) -> Sequence[tuple[Assignment, bool]]:
        return await handed_over(self._session, worker, keys, now)

    async def overdue(self, worker: UUID, before: datetime) -> Collection[Lane]:
        rows = await self._session.fetch(EARLIEST, now=before)
        due = {lane for lane, due_at, _ in rows if due_at <= before}
        if due:
            others = await self._session.fetch(_OTHERS, worker=worker, lanes=list(due))
            due -= {lane for (lane,) in others}
        return due

    async def living(self, now: datetime) -> Sequence[UUID]:
        return [worker for (worker,) in await self._session.fetch(_LIVING, now=now)]

    async def _dismiss(self, gone: Sequence[UUID], now: datetime) -> None:
        if not gone:
            return
        rows = await self._session.fetch(_OF_GONE, gone=gone)
        held = [_Held._make(row) for row in rows]
        await self._interrupt(held, now)
        await self._release(held, now, {})
        await self._session.fetch(_CLEAR_LANES, gone=gone)
        await self._session.fetch(_CLEAR_WORKERS, gone=gone)
        await self._tell_workers()

    async def _tell_workers(self) -> None:
        """Once this is committed, each of them finds out which lanes are its own."""
        if self._session.dialect == "postgresql":
            await self._session.fetch(_WORKERS_CHANGED)

    async def _interrupt(self, held: Sequence[_Held], now: datetime) -> None:
        """Each of them may have been sent, so each gets an attempt."""
        account_id_of = dict(await self._session.fetch(_OWNERS, numbers=_accounts(held)))
        made = [
            (each.account, each.worker, each.interrupted(account_id_of[each.account], now))
            for each in held
        ]
        await add_uncounted(self._session, made)

    async def _release(self, held: Sequence[_Held], now: datetime, changed: dict[str, Any]) -> None:
        """Back into the queue; what was stopped while a worker had it ends instead."""
        stopped: dict[tuple[int, CancelReason], list[UUID]] = defaultdict(list)
        for each in held:
            if each.stop_reason is not None:
                stopped[each.account, each.stop_reason].append(each.id)
        for (account, reason), ids in stopped.items():
            await stops.cancel(self._session, account, ids, reason, now)
        await self._session.update(
            queue,
            _QUEUE_KEY,
            [
                {
                    "account": each.account,
                    "id": each.id,
                    "status": DeliveryStatus.RETRYING
                    if each.attempts_made
                    else DeliveryStatus.PENDING,
                    "worker": None,
                }
                | changed
                for each in held
                if each.stop_reason is None
            ],
        )


def _accounts(held: Sequence[_Held]) -> list[int]:
    return list({each.account for each in held})
