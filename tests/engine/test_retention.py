"""Old things leave by themselves, on both stores, and a house with nothing to do writes nothing."""

import logging
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeVar

import pytest

from cuepost.domain.delivery import DeliveryStatus
from cuepost.engine import retention
from cuepost.engine.housekeeping import Chore, house_chores
from cuepost.ports.store import Action, Priority, Store, Transaction
from tests.application.world import RULES, World
from tests.engine.resting import House, kept_house

T = TypeVar("T")

SECOND, MINUTE, HOUR, DAY = (
    timedelta(seconds=1),
    timedelta(minutes=1),
    timedelta(hours=1),
    timedelta(days=1),
)
WINDOW = 30 * DAY


def chores_of(world: World) -> tuple[Chore, ...]:
    return house_chores(world.store, world.service, world.clock, WINDOW)


@pytest.fixture
async def house(world: World) -> AsyncIterator[House]:
    async with kept_house(world.clock, chores_of(world)) as house:
        yield house


async def ended(world: World) -> None:
    await world.end(await world.complete(), DeliveryStatus.DELIVERED)


async def test_history_is_there_for_the_whole_window_and_gone_soon_after(
    world: World, house: House
) -> None:
    await world.endpoint()
    await ended(world)
    await house.later(WINDOW)
    assert len(await world.deliveries()) == len(await world.events()) == 1
    await ended(world)

    await house.later(DAY)
    await house.later(HOUR)

    [left] = await world.deliveries()
    assert world.clock.now() - left.created_at == DAY + HOUR
    assert [event.id for event in await world.events()] == [left.event_id]


async def test_on_the_embedded_store_it_is_gone_within_ten_minutes(
    sqlite_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "FORGOTTEN_AT_ONCE", 2)
    world = sqlite_world
    async with kept_house(world.clock, chores_of(world)) as house:
        await world.endpoint()
        for _ in range(5):
            await ended(world)
        await house.later(WINDOW + 10 * MINUTE)

    assert (await world.deliveries(), await world.events()) == ([], [])


async def test_a_delivery_that_waits_for_its_attempt_does_not_leave(
    world: World, house: House
) -> None:
    await world.endpoint()
    waiting = await world.complete()

    await house.later(WINDOW + 2 * DAY)
    assert [each.id for each in await world.deliveries()] == [waiting.id]
    await world.end(waiting, DeliveryStatus.DELIVERED)
    await house.later(HOUR)
    assert await world.deliveries() == []


async def test_the_previous_secret_leaves_when_the_overlap_has_ended(
    world: World, house: House
) -> None:
    webhook_id = (await world.endpoint()).view.endpoint.id
    await world.do(world.service.webhooks.rotate_secret, world.owner, webhook_id)

    await house.later(DAY - SECOND)
    assert len((await world.dump())["signing_secrets"]) == 2
    await house.later(10 * MINUTE)
    assert [row.version for row in (await world.dump())["signing_secrets"]] == [2]


async def test_a_bulk_retry_leaves_with_the_history_that_it_was_about(
    world: World, house: House
) -> None:
    webhook_id = (await world.endpoint()).view.endpoint.id
    await world.do(
        world.service.redeliver.start_bulk,
        world.owner,
        webhook_id,
        since=world.clock.now() - HOUR,
        until=None,
        statuses=[],
        dry_run=False,
    )

    await house.later(WINDOW)
    assert len((await world.dump())["bulk_retries"]) == 1
    await house.later(HOUR)
    assert (await world.dump())["bulk_retries"] == []


async def test_two_housekeepers_clear_away_together(
    world: World, house: House, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(retention, "FORGOTTEN_AT_ONCE", 3)
    await world.endpoint()
    for _ in range(10):
        await ended(world)

    async with kept_house(world.clock, chores_of(world)) as other:
        await house.later(WINDOW + DAY)
        await other.rest()
        await house.later(HOUR)
        await other.rest()

    stored = await world.dump()
    assert not any(stored[name] for name in ("events", "deliveries", "attempts", "reports"))
    assert [each for each in caplog.records if each.levelno > logging.WARNING] == []


class Watched:
    """A store that counts how often somebody asks to write."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.writes = 0

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        self.writes += 1
        return self._store.transaction()

    async def write(self, action: Action[T], priority: Priority) -> T:
        self.writes += 1
        return await self._store.write(action, priority)

    def snapshot(self) -> AbstractAsyncContextManager[Transaction]:
        return self._store.snapshot()

    def glance(self) -> AbstractAsyncContextManager[Transaction]:
        return self._store.glance()

    async def check(self) -> None:
        await self._store.check()

    async def prepare_days(self, now: datetime) -> None:
        self.writes += 1
        await self._store.prepare_days(now)


async def test_a_house_with_nothing_to_do_writes_nothing(world: World) -> None:
    await world.endpoint()
    await world.complete()
    async with kept_house(world.clock, chores_of(world)):
        pass
    store = Watched(world.store)
    watched = replace(world, store=store).reassembled(RULES)

    async with kept_house(world.clock, chores_of(watched)) as house:
        await house.later(2 * HOUR)

    assert store.writes == 0
