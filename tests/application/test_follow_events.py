"""Listeners get every event, in one order, until they have acknowledged it."""

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

import pytest

from cuepost.application import follow_events
from cuepost.domain.errors import ListenerLimitReached, MissingScope, NotFound, PositionUnknown
from cuepost.domain.event import Event
from cuepost.domain.event_catalog import SUBSCRIBABLE
from cuepost.domain.listener import Listener
from cuepost.ports.listeners import Streamed
from cuepost.testing import Factory
from tests.application.world import EVERYTHING, RULES, World
from tests.support.watched_store import WatchedStore

NO_WAIT = timedelta(0)
PATIENCE_SECONDS = 20


async def registered(world: World, *events: str, name: str = "laptop") -> Listener:
    return await world.do(world.service.listeners.register, world.owner, name, events)


async def taken(
    world: World, listener: Listener, limit: int = 100, wait: timedelta = NO_WAIT
) -> list[Streamed]:
    return await world.service.listeners.follow(world.owner, listener.id, limit, wait)


async def acknowledged(world: World, listener: Listener, up_to: int) -> Listener:
    return await world.do(world.service.listeners.acknowledge, world.owner, listener.id, up_to)


async def happened(world: World, status: str = "completed") -> UUID:
    [answer] = await world.report(world.milestone(await world.project(), status))
    assert answer.event_id is not None
    return answer.event_id


def places(found: list[Streamed]) -> list[tuple[int, UUID]]:
    return [(each.position, each.event.id) for each in found]


def event_at(world: World, instant: datetime) -> Event:
    return Event(
        account_id=world.account.id,
        id=world.ids(instant),
        type="project.completed",
        created_at=instant,
        project_id=None,
        occurred_at=instant,
        body=b"{}",
    )


async def test_a_new_listener_gets_what_happens_from_then_on(world: World) -> None:
    await happened(world)
    listener = await registered(world)
    assert await taken(world, listener) == []
    later = [await happened(world), await happened(world, "failed")]
    assert places(await taken(world, listener)) == [(1, later[0]), (2, later[1])]
    assert listener.events == SUBSCRIBABLE


async def test_what_is_not_acknowledged_comes_again_and_the_rest_never(world: World) -> None:
    listener = await registered(world)
    first, second, third = [await happened(world) for _ in range(3)]
    assert places(await taken(world, listener, 2)) == [(1, first), (2, second)]
    await acknowledged(world, listener, 1)
    assert places(await taken(world, listener)) == [(2, second)]
    await acknowledged(world, listener, 2)
    assert places(await taken(world, listener)) == [(3, third)]
    assert (await acknowledged(world, listener, 1)).acknowledged == 2
    await acknowledged(world, listener, 3)
    assert await taken(world, listener) == []


async def test_only_what_was_handed_out_can_be_acknowledged(world: World) -> None:
    listener = await registered(world)
    await happened(world)
    with pytest.raises(PositionUnknown):
        await acknowledged(world, listener, 1)


async def test_who_registers_again_goes_on_where_it_stopped(world: World) -> None:
    listener = await registered(world)
    first, second = await happened(world), await happened(world)
    await taken(world, listener, 1)
    await acknowledged(world, listener, 1)
    world.clock.advance(days=20)
    again = await registered(world)
    assert (again.id, again.acknowledged) == (listener.id, 1)
    assert places(await taken(world, again)) == [(2, second)]
    assert first != second


async def test_a_listener_gets_the_chosen_types_alone(world: World) -> None:
    listener = await registered(world, "project.failed")
    await happened(world)
    failed = await happened(world, "failed")
    assert places(await taken(world, listener)) == [(1, failed)]


async def test_nothing_is_told_of_a_project_that_was_deleted_meanwhile(world: World) -> None:
    listener = await registered(world)
    project = await world.project()
    await world.report(world.milestone(project))
    kept = await happened(world)
    await taken(world, listener, 1)
    await world.do(world.service.projects.delete, world.owner, project.id)
    assert places(await taken(world, listener)) == [(2, kept)]


async def test_an_event_of_a_clock_that_lags_is_found_behind_the_others(world: World) -> None:
    listener = await registered(world)
    now = await happened(world)
    for _ in range(3):
        assert places(await taken(world, listener)) in ([(1, now)], [])
        await acknowledged(world, listener, 1)
        world.clock.advance(15)
    late = event_at(world, world.clock.now() - timedelta(seconds=59))
    await world.do(lambda transaction: transaction.events.add([late]))
    assert places(await taken(world, listener)) == [(2, late.id)]
    await acknowledged(world, listener, 2)
    assert await taken(world, listener) == []


async def test_an_event_is_found_however_late_it_is_committed(postgres_world: World) -> None:
    world = postgres_world
    listener = await registered(world)
    project = await world.project()
    async with world.store.transaction() as slow:
        await slow.projects.lock([(world.account.id, project.id)])
        late = event_at(world, world.clock.now())
        await slow.events.add([late])
        for position in range(1, 6):
            world.clock.advance(hours=1)
            event_id = await happened(world)
            assert places(await taken(world, listener)) == [(position, event_id)]
            await acknowledged(world, listener, position)
    assert places(await taken(world, listener)) == [(6, late.id)]


async def test_what_is_settled_is_not_kept_twice(world: World) -> None:
    listener = await registered(world)
    for position in range(1, 6):
        await happened(world)
        await taken(world, listener)
        await acknowledged(world, listener, position)
        world.clock.advance(minutes=2)
    assert await taken(world, listener) == []
    assert await taken(world, listener) == []
    assert (await world.dump())["listener_events"] == []


async def test_a_backlog_comes_in_pages_without_a_gap(world: World) -> None:
    listener = await registered(world)
    made = []
    for _ in range(7):
        made.append(await happened(world))
        world.clock.advance(minutes=1)
    seen: list[tuple[int, UUID]] = []
    while found := await taken(world, listener, 2):
        seen += places(found)
        await acknowledged(world, listener, found[-1].position)
    assert seen == list(enumerate(made, start=1))


async def test_whoever_waits_gets_an_event_and_holds_nobody_up(world: World) -> None:
    listener = await registered(world)
    async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as group:
        waiting = group.create_task(taken(world, listener, wait=timedelta(seconds=20)))
        event_id = await happened(world)
        while not waiting.done():
            world.clock.advance(0.1)
            await asyncio.wait([waiting], timeout=0.01)
    assert places(waiting.result()) == [(1, event_id)]


async def test_whoever_waits_in_vain_is_told_so_in_time_and_at_the_stop(world: World) -> None:
    listener = await registered(world)
    async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as group:
        waiting = group.create_task(taken(world, listener, wait=timedelta(seconds=3)))
        while not waiting.done():
            world.clock.advance(0.1)
            await asyncio.wait([waiting], timeout=0.01)
        stopped = group.create_task(taken(world, listener, wait=timedelta(days=1)))
        world.service.listeners.stop_waiting()
    assert waiting.result() == stopped.result() == []


async def test_a_listener_adds_no_statement_to_a_report(world: World) -> None:
    counted = []
    store = WatchedStore(world.store)  # type: ignore[arg-type]  # it is one of the two stores
    watched = replace(world, store=store).reassembled(RULES)
    for name in (None, "one", "two"):
        if name is not None:
            await registered(world, name=name)
        project = await world.project()
        before = store.watch.operations
        await watched.report(world.milestone(project))
        counted.append(store.watch.operations - before)
    assert counted[0] > 0
    assert len(set(counted)) == 1


async def test_an_account_has_so_many_listeners_and_no_more(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow_events, "MOST_LISTENERS", 2)
    for name in ("one", "two", "two"):
        await registered(world, name=name)
    with pytest.raises(ListenerLimitReached):
        await registered(world, name="three")


async def test_a_deleted_listener_and_one_of_another_account_are_not_there(world: World) -> None:
    listener = await registered(world)
    stranger = await world.new_owner()
    with pytest.raises(NotFound):
        await world.service.listeners.follow(stranger, listener.id, 1, NO_WAIT)
    await world.do(world.service.listeners.delete, world.owner, listener.id)
    with pytest.raises(NotFound):
        await taken(world, listener)
    assert await world.see(world.service.listeners.page, world.owner, EVERYTHING) == []
    actions = [entry.action for entry in await world.audit()]
    assert actions == ["listener.deleted", "listener.created"]


async def test_following_needs_the_scope(world: World) -> None:
    reader = replace(Factory.owner(world.account.id), scopes=frozenset())
    with pytest.raises(MissingScope):
        await world.do(world.service.listeners.register, reader, "laptop", None)
