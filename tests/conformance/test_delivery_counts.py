"""Counts per endpoint and interval are what a full count of the history gives."""

import os
import random
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

import pytest
import sqlalchemy as sa

from cuepost.adapters.storage.tables import accounts, delivery_counts, endpoints, queue
from cuepost.domain.access import Account
from cuepost.domain.attempt import Outcome
from cuepost.domain.delivery import CancelReason, Delivery, DeliveryStatus
from cuepost.domain.delivery_counts import AttemptClass, Counts, total_of
from cuepost.domain.endpoint import Endpoint
from cuepost.domain.project import Project
from cuepost.ports.dispatch import Claim, NextStep, Result
from cuepost.ports.history import Bars
from cuepost.ports.retention import Expiring
from cuepost.ports.store import Transaction
from cuepost.testing import START
from tests.support.full_count import full_count, kept
from tests.support.records import Records
from tests.support.store_rows import AnyStore, add_deliveries, rows

STEPS = int(os.environ.get("CUEPOST_TEST_COUNTED_STEPS", "40"))
MINUTE = timedelta(minutes=1)
BEGINNING = START - timedelta(days=40)
OUTCOMES = [each for each in Outcome if each.counts]
S = DeliveryStatus


@dataclass(slots=True)
class Mix:
    """Random work on one account, by seed."""

    store: AnyStore
    records: Records
    chance: random.Random
    account: Account
    receivers: list[Endpoint]
    project: Project
    worker: UUID
    done: dict[str, int] = field(default_factory=dict)

    async def write(self, work: Callable[[Transaction], Awaitable[object]]) -> None:
        async with self.store.transaction() as transaction:
            await work(transaction)

    async def step(self) -> None:
        name = self.chance.choice(list(STEP_OF))
        await STEP_OF[name](self)
        self.done[name] = self.done.get(name, 0) + 1
        self.records.clock.advance(seconds=self.chance.randrange(240))

    async def live(self, **having: object) -> list[sa.Row[tuple[object, ...]]]:
        return list(await rows(self.store, sa.select(queue).filter_by(**having)))

    async def deliver(self) -> None:
        made = [self._delivery() for _ in range(self.chance.randrange(1, 6))]
        await self.write(lambda t: add_deliveries(t, *made))

    async def miss(self) -> None:
        """As for a disabled endpoint."""
        made = self._delivery(status=S.CANCELLED, reason=CancelReason.ENDPOINT_DISABLED)
        await self.write(lambda t: add_deliveries(t, made))

    async def claim(self) -> None:
        now = self.records.clock.now()
        wanted = Claim(self.worker, room=4, room_of=lambda _: 4, scan_after=0)
        await self.write(lambda t: t.queue.register_worker(self.worker, now + 100 * MINUTE))
        await self.write(lambda t: t.queue.claim(wanted, now))

    async def record(self, *, late: bool = False) -> None:
        held = await self.live(worker=self.worker)
        results = [await self._result(row) for row in held if self.chance.random() < 0.8]
        sender = self.records.id() if late else self.worker
        now = self.records.clock.now()
        await self.write(lambda t: t.outcomes.record(sender, results, now))

    async def record_late(self) -> None:
        await self.record(late=True)

    async def lose_worker(self) -> None:
        await self.write(lambda t: t.queue.remove_worker(self.worker, self.records.clock.now()))

    async def stop_project(self) -> None:
        reason, now = CancelReason.PROJECT_DELETED, self.records.clock.now()
        await self.write(
            lambda t: t.deliveries.stop_project(self.account.id, self.project.id, reason, now)
        )

    async def stop_endpoint(self) -> None:
        chosen, now = self.chance.choice(self.receivers), self.records.clock.now()
        reason = CancelReason.ENDPOINT_DISABLED
        await self.write(
            lambda t: t.deliveries.stop_endpoint(self.account.id, chosen.id, reason, now)
        )

    async def send_again(self) -> None:
        ended = await rows(self.store, sa.text("SELECT id FROM deliveries"))
        ids = [UUID(bytes=bytes(row.id)) if isinstance(row.id, bytes) else row.id for row in ended]
        some = [each for each in ids if self.chance.random() < 0.3]
        now = self.records.clock.now()
        await self.write(lambda t: t.deliveries.send_again(self.account.id, some, now))

    async def delete_endpoint(self) -> None:
        if len(self.receivers) > 2 and self.chance.random() < 0.2:
            gone, now = self.receivers.pop(), self.records.clock.now()
            await self.write(lambda t: t.endpoints.delete(self.account.id, gone.id, now))

    async def close_window(self) -> None:
        """What is claimed from then on ends there."""
        for ends_at in (self.records.clock.now(), None):
            closed = self.records.project(
                self.account.id, id=self.project.id, access_expires_at=ends_at
            )
            await self.write(lambda t, closed=closed: t.projects.save([closed]))  # type: ignore[misc]
            await self.claim()

    def _delivery(self, **changed: object) -> Delivery:
        chosen = self.chance.choice(self.receivers)
        in_project = {"project_id": self.project.id}
        return self.records.delivery(self.account.id, webhook_id=chosen.id, **in_project, **changed)

    async def _result(self, row: sa.Row[tuple[object, ...]]) -> Result:
        named = row._asdict()
        delivery = self.records.delivery(
            self.account.id, id=named["id"], event_id=named["event_id"], budget=named["budget"]
        )
        number = named["attempts_made"] + 1
        assignment = self.records.assignment(
            delivery,
            account=named["account"],
            lane=named["endpoint"],
            number=number,
            attempt_count=named["attempt_count"],
        )
        outcome = self.chance.choice(OUTCOMES)
        attempt = self.records.attempt(
            delivery,
            budget=named["budget"],
            number=number,
            outcome=outcome,
            response_status=self.chance.choice((302, 404, 500, 599)),
            duration_ms=self.chance.choice((0.5, 10.0, 10.1, 777.0, 15_000.0)),
        )
        due_at = self.records.clock.now() + MINUTE
        ends = NextStep(S.DELIVERED if outcome is Outcome.DELIVERED else S.FAILED)
        is_over = outcome is Outcome.DELIVERED or number == 3
        return Result(assignment, attempt, ends if is_over else NextStep(S.RETRYING, due_at))


STEP_OF: dict[str, Callable[[Mix], Awaitable[None]]] = {
    "deliver": Mix.deliver,
    "miss": Mix.miss,
    "claim": Mix.claim,
    "record": Mix.record,
    "record late": Mix.record_late,
    "lose worker": Mix.lose_worker,
    "stop project": Mix.stop_project,
    "stop endpoint": Mix.stop_endpoint,
    "send again": Mix.send_again,
    "delete endpoint": Mix.delete_endpoint,
    "close window": Mix.close_window,
}
USUAL = ("deliver", "claim", "record")


async def mixed(store: AnyStore, records: Records, seed: int) -> Mix:
    account = records.account()
    project = records.project(account.id, access_expires_at=None)
    receivers = [records.endpoint(account.id) for _ in range(4)]
    async with store.transaction() as transaction:
        await transaction.accounts.add(account)
        await transaction.projects.add(project)
        for each in receivers:
            await transaction.endpoints.add(each, records.secret())
    chance = random.Random(seed)
    return Mix(store, records, chance, account, receivers, project, records.id())


@pytest.mark.parametrize("seed", range(4))
async def test_after_any_mix_of_work_they_equal_a_full_count(
    store: AnyStore, records: Records, seed: int
) -> None:
    mix = await mixed(store, records, seed)
    names = set[object]()
    for place in range(STEPS):
        for name in USUAL:
            await STEP_OF[name](mix)
        if place % 2:
            await mix.step()
        if place % 8 == 7:
            found = await kept(store)
            assert found == await full_count(store), mix.done
            names |= {name for *_, name in found}
    assert {"delivered", "failed", "cancelled", "abandoned", "http_5xx"} <= names


async def test_they_are_read_by_endpoint_and_for_the_account(
    store: AnyStore, records: Records
) -> None:
    mix = await mixed(store, records, 1)
    for _ in range(30):
        await mix.deliver()
        await mix.claim()
        await mix.record()
    ids = [each.id for each in mix.receivers]
    async with store.snapshot() as transaction:
        counts = transaction.counts
        for minutes in (5, 60):
            bars = Bars(BEGINNING, minutes, minutes)
            apart = await counts.of_endpoints(mix.account.id, ids, bars)
            together = await counts.of_account(mix.account.id, bars)
            by_hand, summed = Counts(), Counts()
            for interval in [each for found in apart.values() for each in found]:
                by_hand = total_of([by_hand, interval.counts])
            for interval in together:
                summed = total_of([summed, interval.counts])
            assert summed == by_hand
            assert summed.attempts[AttemptClass.SERVER_ERROR] > 0
            assert sum(summed.attempts.values()) == sum(summed.latency)
        later = records.clock.now() + 100 * MINUTE
        assert await counts.of_account(mix.account.id, Bars(later, 5, 5)) == []


async def test_a_bar_is_the_sum_of_its_intervals(store: AnyStore, records: Records) -> None:
    mix = await mixed(store, records, 1)
    since = records.clock.now() + 7 * MINUTE
    for _ in range(30):
        await mix.deliver()
        await mix.claim()
        await mix.record()
        records.clock.advance(seconds=300)
    ids = [each.id for each in mix.receivers]
    async with store.snapshot() as transaction:
        counts, account_id = transaction.counts, mix.account.id
        apart = await counts.of_endpoints(account_id, ids, Bars(since, 5, 20))
        together = await counts.of_account(account_id, Bars(since, 5, 20))
        intervals = await counts.of_account(account_id, Bars(START, 5, 5))
    by_hand: dict[datetime, list[Counts]] = defaultdict(list)
    for each in intervals:
        if each.since >= since:
            place = (each.since - since) // (20 * MINUTE)
            by_hand[since + place * 20 * MINUTE].append(each.counts)
    summed = {begin: total_of(each) for begin, each in by_hand.items()}
    assert len(summed) > 4
    assert {each.since: each.counts for each in together} == summed
    for begin, total in summed.items():
        found = [each for bars in apart.values() for each in bars if each.since == begin]
        assert total_of(each.counts for each in found) == total


async def test_they_leave_with_the_history(store: AnyStore, records: Records) -> None:
    mix = await mixed(store, records, 2)
    await mix.miss()
    records.clock.advance(hours=3)
    await mix.miss()
    before = records.clock.now() - timedelta(hours=2)
    async with store.transaction() as transaction:
        assert await transaction.retention.any_before(Expiring.SHORT_COUNTS, before)
        await transaction.retention.delete_before(Expiring.SHORT_COUNTS, before, 100)
        assert not await transaction.retention.any_before(Expiring.SHORT_COUNTS, before)
    left = [row.minutes for row in await rows(store, sa.select(delivery_counts))]
    assert sorted(left) == [5, 60, 60]
    async with store.transaction() as transaction:
        assert await transaction.retention.any_before(Expiring.COUNTS, before)
        await transaction.retention.delete_before(Expiring.COUNTS, before, 100)
    left = [row.minutes for row in await rows(store, sa.select(delivery_counts))]
    assert sorted(left) == [5, 60]


async def test_a_deleted_endpoint_leaves_none_behind(store: AnyStore, records: Records) -> None:
    mix = await mixed(store, records, 3)
    for _ in range(5):
        await mix.deliver()
        await mix.miss()
    for each in mix.receivers:
        now = records.clock.now()
        async with store.transaction() as transaction:
            await transaction.endpoints.delete(mix.account.id, each.id, now)
    assert await rows(store, sa.select(endpoints)) == []
    assert await rows(store, sa.select(delivery_counts)) == []
    assert len(await rows(store, sa.select(accounts))) == 1
