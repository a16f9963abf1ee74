"""Events: exact bytes, and pages of them."""

from datetime import timedelta
from typing import Any

from cuepost.domain.event import Event, SilenceReason
from cuepost.ports.history import EventFilter
from cuepost.ports.records import Page
from tests.support.records import Records
from tests.support.store_rows import AnyStore, introduce


async def add(store: AnyStore, *events: Event) -> None:
    async with store.transaction() as transaction:
        await introduce(transaction, *(each.account_id for each in events))
        await transaction.events.add(events)


async def page(store: AnyStore, event: Event, limit: int = 10, **chosen: Any) -> list[Event]:
    wanted = EventFilter(**chosen)
    async with store.snapshot() as transaction:
        return await transaction.events.page(event.account_id, wanted, Page(limit))


async def test_an_event_comes_back_byte_for_byte(store: AnyStore, records: Records) -> None:
    account_id = records.id()
    events = [
        records.event(account_id),
        records.event(account_id, project_id=None, type="webhook.test", body=bytes(range(256))),
        *(records.event(account_id, reason=reason) for reason in SilenceReason),
    ]
    await add(store, *events)

    async with store.snapshot() as transaction:
        found = [await transaction.events.get(account_id, event.id) for event in events]
        assert await transaction.events.get(account_id, records.id()) is None
    assert found == events


async def test_nothing_is_added_when_there_is_nothing_to_add(store: AnyStore) -> None:
    await add(store)


async def test_hundreds_of_events_are_added_at_once(store: AnyStore, records: Records) -> None:
    account_id = records.id()
    events = [records.event(account_id) for _ in range(537)]
    await add(store, *events)
    assert await page(store, events[0], limit=1_000) == events[::-1]


async def test_events_are_paged_newest_first(store: AnyStore, records: Records) -> None:
    account_id = records.id()
    events = []
    for _ in range(7):
        events.append(records.event(account_id))
        records.clock.advance(0.001)
    await add(store, *events, records.event(records.id()))

    async with store.snapshot() as transaction:
        first = await transaction.events.page(account_id, EventFilter(), Page(5))
        second = await transaction.events.page(account_id, EventFilter(), Page(5, first[-1].id))
    assert [first, second] == [events[:1:-1], events[1::-1]]


async def test_events_are_chosen_by_type_and_project(store: AnyStore, records: Records) -> None:
    account_id, project_id = records.id(), records.id()
    types = ("project.ready", "project.completed")
    mine = [records.event(account_id, type=name, project_id=project_id) for name in types]
    other = [records.event(account_id, type=name) for name in types]
    await add(store, *mine, *other)

    assert await page(store, mine[0], event_type="project.ready") == [other[0], mine[0]]
    assert await page(store, mine[0], project_id=project_id) == mine[::-1]
    assert await page(store, mine[0], project_id=project_id, event_type=types[1]) == [mine[1]]
    assert await page(store, mine[0], event_type="webhook.test") == []


async def test_events_are_chosen_by_the_time_in_their_ids(
    store: AnyStore, records: Records
) -> None:
    account_id, begin = records.id(), records.clock.now()
    events = []
    for _ in range(4):
        events.append(records.event(account_id))
        records.clock.advance(0.001)
    await add(store, *events)
    second, fourth = begin + timedelta(milliseconds=1), begin + timedelta(milliseconds=3)

    assert await page(store, events[0], since=second) == events[:0:-1]
    assert await page(store, events[0], until=fourth) == events[2::-1]
    assert await page(store, events[0], since=second, until=fourth) == events[2:0:-1]
    assert await page(store, events[0], since=fourth, until=second) == []
