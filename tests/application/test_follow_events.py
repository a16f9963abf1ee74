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
from tests.application.harness import EVERYTHING, RULES, Harness
from tests.support.watched_store import WatchedStore

NO_WAIT = timedelta(0)
PATIENCE_SECONDS = 20


async def registered(harness: Harness, *events: str, name: str = "laptop") -> Listener:
    return await harness.do(harness.service.listeners.register, harness.owner, name, events)


async def taken(
    harness: Harness, listener: Listener, limit: int = 100, wait: timedelta = NO_WAIT
) -> list[Streamed]:
    return await harness.service.listeners.follow(harness.owner, listener.id, limit, wait)


async def acknowledged(harness: Harness, listener: Listener, up_to: int) -> Listener:
    return await harness.do(
        harness.service.listeners.acknowledge, harness.owner, listener.id, up_to
    )


async def happened(harness: Harness, status: str = "completed") -> UUID:
    [answer] = await harness.report(harness.milestone(await harness.project(), status))
    assert answer.event_id is not None
    return answer.event_id


def places(found: list[Streamed]) -> list[tuple[int, UUID]]:
    return [(each.position, each.event.id) for each in found]


def event_at(harness: Harness, instant: datetime) -> Event:
    return Event(
        account_id=harness.account.id,
        id=harness.ids(instant),
        type="project.completed",
        created_at=instant,
        project_id=None,
        occurred_at=instant,
        body=b"{}",
    )


async def test_a_new_listener_gets_what_happens_from_then_on(harness: Harness) -> None:
    await happened(harness)
    listener = await registered(harness)
    assert await taken(harness, listener) == []
    later = [await happened(harness), await happened(harness, "failed")]
    assert places(await taken(harness, listener)) == [(1, later[0]), (2, later[1])]
    assert listener.events == SUBSCRIBABLE


async def test_what_is_not_acknowledged_comes_again_and_the_rest_never(harness: Harness) -> None:
    listener = await registered(harness)
    first, second, third = [await happened(harness) for _ in range(3)]
    assert places(await taken(harness, listener, 2)) == [(1, first), (2, second)]
    await acknowledged(harness, listener, 1)
    assert places(await taken(harness, listener)) == [(2, second)]
    await acknowledged(harness, listener, 2)
    assert places(await taken(harness, listener)) == [(3, third)]
    assert (await acknowledged(harness, listener, 1)).acknowledged == 2
    await acknowledged(harness, listener, 3)
    assert await taken(harness, listener) == []


async def test_only_what_was_handed_out_can_be_acknowledged(harness: Harness) -> None:
    listener = await registered(harness)
    await happened(harness)
    with pytest.raises(PositionUnknown):
        await acknowledged(harness, listener, 1)


async def test_who_registers_again_goes_on_where_it_stopped(harness: Harness) -> None:
    listener = await registered(harness)
    first, second = await happened(harness), await happened(harness)
    await taken(harness, listener, 1)
    await acknowledged(harness, listener, 1)
    harness.clock.advance(days=20)
    again = await registered(harness)
    assert (again.id, again.acknowledged) == (listener.id, 1)
    assert places(await taken(harness, again)) == [(2, second)]
    assert first != second


async def test_a_listener_gets_the_chosen_types_alone(harness: Harness) -> None:
    listener = await registered(harness, "project.failed")
    await happened(harness)
    failed = await happened(harness, "failed")
    assert places(await taken(harness, listener)) == [(1, failed)]


async def test_nothing_is_told_of_a_project_that_was_deleted_meanwhile(harness: Harness) -> None:
    listener = await registered(harness)
    project = await harness.project()
    await harness.report(harness.milestone(project))
    kept = await happened(harness)
    await taken(harness, listener, 1)
    await harness.do(harness.service.projects.delete, harness.owner, project.id)
    assert places(await taken(harness, listener)) == [(2, kept)]


async def test_an_event_of_a_clock_that_lags_is_found_behind_the_others(harness: Harness) -> None:
    listener = await registered(harness)
    now = await happened(harness)
    for _ in range(3):
        assert places(await taken(harness, listener)) in ([(1, now)], [])
        await acknowledged(harness, listener, 1)
        harness.clock.advance(15)
    late = event_at(harness, harness.clock.now() - timedelta(seconds=59))
    await harness.do(lambda transaction: transaction.events.add([late]))
    assert places(await taken(harness, listener)) == [(2, late.id)]
    await acknowledged(harness, listener, 2)
    assert await taken(harness, listener) == []


async def test_an_event_is_found_however_late_it_is_committed(postgres_harness: Harness) -> None:
    harness = postgres_harness
    listener = await registered(harness)
    project = await harness.project()
    async with harness.store.transaction() as slow:
        await slow.projects.lock([(harness.account.id, project.id)])
        late = event_at(harness, harness.clock.now())
        await slow.events.add([late])
        for position in range(1, 6):
            harness.clock.advance(hours=1)
            event_id = await happened(harness)
            assert places(await taken(harness, listener)) == [(position, event_id)]
            await acknowledged(harness, listener, position)
    assert places(await taken(harness, listener)) == [(6, late.id)]


async def test_what_is_settled_is_not_kept_twice(harness: Harness) -> None:
    listener = await registered(harness)
    for position in range(1, 6):
        await happened(harness)
        await taken(harness, listener)
        await acknowledged(harness, listener, position)
        harness.clock.advance(minutes=2)
    assert await taken(harness, listener) == []
    assert await taken(harness, listener) == []
    assert (await harness.dump())["listener_events"] == []


async def test_a_backlog_comes_in_pages_without_a_gap(harness: Harness) -> None:
    listener = await registered(harness)
    made = []
    for _ in range(7):
        made.append(await happened(harness))
        harness.clock.advance(minutes=1)
    seen: list[tuple[int, UUID]] = []
    while found := await taken(harness, listener, 2):
        seen += places(found)
        await acknowledged(harness, listener, found[-1].position)
    assert seen == list(enumerate(made, start=1))


async def test_whoever_waits_gets_an_event_and_holds_up_no_other(harness: Harness) -> None:
    listener = await registered(harness)
    async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as group:
        waiting = group.create_task(taken(harness, listener, wait=timedelta(seconds=20)))
        event_id = await happened(harness)
        while not waiting.done():
            harness.clock.advance(0.1)
            await asyncio.wait([waiting], timeout=0.01)
    assert places(waiting.result()) == [(1, event_id)]


async def test_whoever_waits_in_vain_is_told_so_in_time_and_at_the_stop(harness: Harness) -> None:
    listener = await registered(harness)
    async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as group:
        waiting = group.create_task(taken(harness, listener, wait=timedelta(seconds=3)))
        while not waiting.done():
            harness.clock.advance(0.1)
            await asyncio.wait([waiting], timeout=0.01)
        stopped = group.create_task(taken(harness, listener, wait=timedelta(days=1)))
        harness.service.listeners.stop_waiting()
    assert waiting.result() == stopped.result() == []


async def test_a_listener_adds_no_statement_to_a_report(harness: Harness) -> None:
    counted = []
    store = WatchedStore(harness.store)  # type: ignore[arg-type]  # it is one of the two stores
    watched = replace(harness, store=store).reassembled(RULES)
    for name in (None, "one", "two"):
        if name is not None:
            await registered(harness, name=name)
        project = await harness.project()
        before = store.watch.operations
        await watched.report(harness.milestone(project))
        counted.append(store.watch.operations - before)
    assert counted[0] > 0
    assert len(set(counted)) == 1


async def test_the_listeners_of_an_account_are_limited(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow_events, "MOST_LISTENERS", 2)
    for name in ("one", "two", "two"):
        await registered(harness, name=name)
    with pytest.raises(ListenerLimitReached):
        await registered(harness, name="three")


async def test_a_deleted_listener_and_one_of_another_account_are_not_there(
    harness: Harness,
) -> None:
    listener = await registered(harness)
    stranger = await harness.new_owner()
    with pytest.raises(NotFound):
        await harness.service.listeners.follow(stranger, listener.id, 1, NO_WAIT)
    await harness.do(harness.service.listeners.delete, harness.owner, listener.id)
    with pytest.raises(NotFound):
        await taken(harness, listener)
    assert await harness.see(harness.service.listeners.page, harness.owner, EVERYTHING) == []
    actions = [entry.action for entry in await harness.audit()]
    assert actions == ["listener.deleted", "listener.created"]


async def test_following_needs_the_scope(harness: Harness) -> None:
    reader = replace(Factory.owner(harness.account.id), scopes=frozenset())
    with pytest.raises(MissingScope):
        await harness.do(harness.service.listeners.register, reader, "laptop", None)
