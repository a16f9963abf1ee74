"""Deliveries of a project are found through its events, page by page."""

from cuepost.domain.delivery import Delivery
from cuepost.ports.history import DeliveryFilter
from cuepost.ports.records import Page
from tests.support.records import Records
from tests.support.store_rows import AnyStore, add_deliveries, introduce


async def test_pages_of_a_project_go_on_through_all_its_events(
    store: AnyStore, records: Records
) -> None:
    """Events are looked at a few at a time; some are of one millisecond, some have no delivery."""
    account_id, project_id = records.id(), records.id()
    made: list[Delivery] = []
    for in_one_millisecond in (1, 5, 2, 1, 4, 1):
        events = [records.event(account_id, project_id=project_id) for _ in range(2)]
        # Within a millisecond ids are by chance: those of deliveries and events in no common order.
        event_ids = sorted((records.id() for _ in range(in_one_millisecond)), reverse=True)
        made += [
            records.delivery(account_id, project_id=project_id, event_id=event_id)
            for event_id in event_ids
        ]
        async with store.transaction() as transaction:
            await introduce(transaction, account_id)
            await transaction.events.add(events)
        records.clock.advance(0.001)
    async with store.transaction() as transaction:
        await add_deliveries(transaction, *made)

    found: list[Delivery] = []
    async with store.snapshot() as transaction:
        chosen, place = DeliveryFilter(project_id=project_id), Page(3)
        while some := await transaction.deliveries.page(account_id, chosen, place):
            found += some
            place = Page(3, some[-1].id)
    assert found == made[::-1]
