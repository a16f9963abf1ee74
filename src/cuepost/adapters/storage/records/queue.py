"""The queue: workers, the lanes that they hold, and deliveries that they put back."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from cuepost.adapters.storage.columns import IN_FLIGHT
from cuepost.adapters.storage.records import stops
from cuepost.adapters.storage.records.attempts import add_uncounted
from cuepost.adapters.storage.records.claim_statements import EARLIEST, Due
from cuepost.adapters.storage.records.claims import Claims, Fact, assignment_of, stopped_by
from cuepost.adapters.storage.records.counts import Tally
from cuepost.adapters.storage.records.delivery_pages import lowest_of
from cuepost.adapters.storage.records.delivery_rows import KEY
from cuepost.adapters.storage.records.endpoints import load_targets
from cuepost.adapters.storage.session import Records
from cuepost.adapters.storage.sql import Sql, by_keys
from cuepost.domain.attempt import Attempt, interrupted, trigger_of
from cuepost.domain.delivery import CancelReason, DeliveryStatus, Trigger
from cuepost.ports.dispatch import Assignment, Claim, Claimed, DeliveryKey, Lane


class _Held(NamedTuple):
    """A delivery that is leased to a worker."""

    account: int
    id: UUID
    stop_reason: CancelReason | None
    attempts_made: int
    trigger: Trigger
    worker: UUID | None

    def interrupted(self, account_id: UUID, now: datetime) -> Attempt:
        trigger = trigger_of(self.trigger, self.attempts_made + 1)
        return interrupted(account_id, self.id, trigger, now)


_REGISTER = Sql(
    """
    INSERT INTO workers (id, alive_until) VALUES (:worker, :until)
    ON CONFLICT (id) DO UPDATE SET alive_until = excluded.alive_until
    """
)
_RENEW = Sql("UPDATE workers SET alive_until = :until WHERE id = :worker")
_LEAVE = Sql("UPDATE workers SET leaving = true WHERE id = :worker")
_RELEASE_OTHERS = Sql("DELETE FROM lanes WHERE worker_id = :worker AND endpoint NOT IN :busy")
_ACCEPT_NONE = Sql("UPDATE lanes SET accepts = false WHERE worker_id = :worker")
_DEAD = Sql("SELECT id FROM workers WHERE alive_until <= :now FOR UPDATE SKIP LOCKED")
_NEXT_HOLDER = f"SELECT queue.worker FROM queue WHERE {IN_FLIGHT}"
# Workers that hold leases but have no row: they were removed at the moment in which they committed.
# Steps from one holder to the next by the index, because there are few holders in a possibly long
# queue.
_UNKNOWN = Sql(
    f"""
    WITH RECURSIVE holders (worker) AS (
        SELECT ({_NEXT_HOLDER} ORDER BY queue.worker LIMIT 1)
        UNION ALL
        SELECT ({_NEXT_HOLDER} AND queue.worker > holders.worker ORDER BY queue.worker LIMIT 1)
        FROM holders WHERE holders.worker IS NOT NULL
    )
    SELECT worker FROM holders
    WHERE worker IS NOT NULL AND worker NOT IN (SELECT id FROM workers)
    """
)
_LEASED = Sql("SELECT id FROM queue WHERE worker = :worker")
# Forces PostgreSQL to look up each row by its key. While the tables are small, it would otherwise
# choose any index that begins with the account, or the index of leases, and read all its entries
# for each delivery. The bounds limit the partitions in which events are searched.
_HANDED_OVER = by_keys(
    f"""
    SELECT {", ".join(f"queue.{name}" for name in Due._fields)},
        events.body, projects.access_expires_at, projects.deleted_at, queue.stop_reason
    FROM queue
    JOIN accounts ON accounts.number = queue.account
    JOIN events
        ON events.account == queue.account AND events.id == queue.event_id
        AND (events.id BETWEEN :lowest AND :highest OR events.id = :lowest)
    LEFT JOIN projects
        ON projects.id == queue.project_id AND (projects.account_id = accounts.id) IS TRUE
    """,
    "queue.account",
    "queue.id",
    "AND (queue.worker = :worker) IS TRUE",
)
_LIVING = Sql("SELECT id FROM workers WHERE alive_until > :now AND NOT leaving ORDER BY id")
_HELD = f"SELECT {', '.join(_Held._fields)} FROM queue WHERE {IN_FLIGHT}"
_OF_GONE = Sql(f"{_HELD} AND worker IN :gone ORDER BY id FOR UPDATE")
_OF_WORKER = Sql(f"{_HELD} AND worker = :worker AND id IN :deliveries ORDER BY id FOR UPDATE")
_OTHERS = Sql("SELECT endpoint FROM lanes WHERE endpoint IN :lanes AND worker_id != :worker")
_ACCEPT = Sql(
    "UPDATE lanes SET accepts = :accepts WHERE worker_id = :worker AND endpoint IN :lanes"
)
_OWNERS = Sql("SELECT number, id FROM accounts WHERE number IN :numbers")
_CLEAR_LANES = Sql("DELETE FROM lanes WHERE worker_id IN :gone")
_CLEAR_WORKERS = Sql("DELETE FROM workers WHERE id IN :gone")
_ALL_LANES = Sql("DELETE FROM lanes")
_ALL_WORKERS = Sql("DELETE FROM workers")


class QueueRecords(Records):
    """What both engines have in common."""

    claims: type[Claims]

    async def time(self, here: datetime) -> datetime:
        return here

    async def register_worker(self, worker: UUID, until: datetime) -> None:
        await self._session.execute(_REGISTER, worker=worker, until=until)
        await self._wake_workers()

    async def renew_lease(self, worker: UUID, until: datetime) -> bool:
        return await self._session.execute(_RENEW, worker=worker, until=until) > 0

    async def leave(self, worker: UUID, busy: Collection[Lane]) -> None:
        await self._session.execute(_LEAVE, worker=worker)
        await self._session.execute(_RELEASE_OTHERS, worker=worker, busy=busy)
        await self._session.execute(_ACCEPT_NONE, worker=worker)
        await self._wake_workers()

    async def remove_worker(self, worker: UUID, now: datetime) -> None:
        await self._remove([worker], now)

    async def remove_all_workers(self) -> None:
        """`remove_dead_workers` ends their leases later, as those of workers that have no row."""
        await self._session.execute(_ALL_LANES)
        await self._session.execute(_ALL_WORKERS)

    async def remove_dead_workers(self, now: datetime) -> int:
        dead = await self._session.fetch(_DEAD, now=now)
        unknown = await self._session.fetch(_UNKNOWN)
        await self._remove([worker for (worker,) in (*dead, *unknown)], now)
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
        rows = await self._session.fetch(_OF_WORKER, worker=worker, deliveries=delivery_ids)
        held = [_Held._make(row) for row in rows]
        if may_be_sent:
            # Without a worker, because their worker will not report a result.
            await self._interrupt([each._replace(worker=None) for each in held], now)
        await self._release(held, now, {} if due_at is None else {"due_at": due_at})

    async def claim(self, wanted: Claim, now: datetime) -> Claimed:
        return await self.claims(self._session).claim(wanted, now)

    async def accept(
        self, worker: UUID, opened: Collection[Lane], closed: Collection[Lane]
    ) -> None:
        for chosen, accepts in ((opened, True), (closed, False)):
            if chosen:
                await self._session.execute(_ACCEPT, worker=worker, lanes=chosen, accepts=accepts)

    async def handed_over(
        self, worker: UUID, keys: Sequence[DeliveryKey], now: datetime
    ) -> Sequence[tuple[Assignment, bool]]:
        """Read without a claim, because they were leased when they were created."""
        ids = [delivery_id for _, delivery_id in keys]
        rows = await self._session.fetch(
            _HANDED_OVER,
            worker=worker,
            accounts=[account for account, _ in keys],
            deliveries=ids,
            # An event has the millisecond of its deliveries, and a lower id.
            lowest=lowest_of(min(ids)),
            highest=max(ids),
        )
        width = len(Due._fields)
        due = [Due._make(row[:width]) for row in rows]
        targets = await load_targets(self._session, {each.endpoint for each in due}, now)
        found: list[tuple[Assignment, bool]] = []
        for each, row in zip(due, rows, strict=True):
            *facts, stop_reason = row[width:]
            fact, target = Fact._make(facts), targets.get(each.endpoint)
            if target is not None:
                # It may have been stopped since it was created.
                may_be_sent = stop_reason is None and stopped_by(fact, now) is None
                found.append((assignment_of(each, fact, target), may_be_sent))
        return found

    async def overdue(self, worker: UUID, before: datetime) -> Collection[Lane]:
        rows = await self._session.fetch(EARLIEST, now=before)
        due = {lane for lane, due_at, _ in rows if due_at <= before}
        if due:
            others = await self._session.fetch(_OTHERS, worker=worker, lanes=due)
            due -= {lane for (lane,) in others}
        return due

    async def live_workers(self, now: datetime) -> Sequence[UUID]:
        return [worker for (worker,) in await self._session.fetch(_LIVING, now=now)]

    async def _remove(self, gone: Sequence[UUID], now: datetime) -> None:
        if not gone:
            return
        rows = await self._session.fetch(_OF_GONE, gone=gone)
        held = [_Held._make(row) for row in rows]
        await self._interrupt(held, now)
        await self._release(held, now, {})
        await self._session.execute(_CLEAR_LANES, gone=gone)
        await self._session.execute(_CLEAR_WORKERS, gone=gone)
        await self._wake_workers()

    async def _wake_workers(self) -> None:
        """After the commit, each worker determines its share of the lanes again."""

    async def _interrupt(self, held: Sequence[_Held], now: datetime) -> None:
        """Adds an interrupted attempt for each, because each may have been sent."""
        account_id_of = dict(await self._session.fetch(_OWNERS, numbers=_accounts(held)))
        made = [
            (each.account, each.worker, each.interrupted(account_id_of[each.account], now))
            for each in held
        ]
        await add_uncounted(self._session, made)

    async def _release(self, held: Sequence[_Held], now: datetime, changed: dict[str, Any]) -> None:
        """Puts them back into the queue; deliveries that were stopped in flight end instead."""
        stopped: dict[tuple[int, CancelReason], list[UUID]] = defaultdict(list)
        for each in held:
            if each.stop_reason is not None:
                stopped[each.account, each.stop_reason].append(each.id)
        tally = Tally()
        for (account, reason), ids in stopped.items():
            await stops.cancel(self._session, account, ids, reason, now, tally=tally)
        await tally.write(self._session)
        await self._session.update(
            "queue",
            KEY,
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
