"""Erasing an account leaves no row of it, and every row of the others."""

from tests.support.records import Records
from tests.support.store_population import populate
from tests.support.store_rows import OWNED_TABLES, AnyStore, row_counts


async def test_nothing_of_an_erased_account_is_left_in_any_table(
    store: AnyStore, records: Records
) -> None:
    kept = await populate(store, records)
    before = await row_counts(store)
    assert set(before) == {table.name for table in OWNED_TABLES}
    erased = await populate(store, records)

    async with store.transaction() as transaction:
        assert not await transaction.accounts.erase_some(erased.account.id, 100)
    async with store.transaction() as transaction:
        assert await transaction.accounts.erase_some(erased.account.id, 100)

    assert await row_counts(store) == before
    async with store.snapshot() as transaction:
        assert await transaction.accounts.oldest(100) == [kept.account]


async def test_a_step_removes_no_more_rows_of_a_kind_than_it_may(
    store: AnyStore, records: Records
) -> None:
    account = records.account()
    async with store.transaction() as transaction:
        await transaction.accounts.add(account)
        await transaction.events.add([records.event(account.id) for _ in range(5)])
        reports = [records.report() for _ in range(3)]
        await transaction.reports.add(
            {(account.id, each.answer.report_id): each for each in reports}, records.clock.now()
        )

    seen = []
    done = False
    while not done:
        async with store.transaction() as transaction:
            done = await transaction.accounts.erase_some(account.id, 2)
        seen.append(await row_counts(store))

    assert seen == [
        {"accounts": 1, "events": 3, "reports": 1},
        {"accounts": 1, "events": 1},
        {"accounts": 1},
        {},
    ]
