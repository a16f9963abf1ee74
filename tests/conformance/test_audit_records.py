"""The audit trail: pages, filters, and how much of the table one statement reads."""

from dataclasses import replace
from uuid import UUID

import pytest

from cuepost.adapters.storage.records import audit
from cuepost.adapters.storage.transaction import RecordsTransaction
from cuepost.domain.audit import Action, AuditEntry
from cuepost.ports.records import EVERY_ENTRY, AuditFilter, Page
from tests.conformance.test_account_plans import asked, plan_of
from tests.support.records import Records
from tests.support.store_rows import AnyStore

A = Action
ALL = Page(100)
MANY = 3_000


async def test_audit_entries_come_back_newest_first(store: AnyStore, records: Records) -> None:
    account_id = records.id()
    entries = [
        records.audit_entry(account_id, action=action, address=None, subject=None, details={})
        for action in Action
    ] + [records.audit_entry(account_id)]
    async with store.transaction() as transaction:
        for entry in (*entries, records.audit_entry(records.id())):
            await transaction.audit.add(entry)

    async with store.snapshot() as transaction:
        first = await transaction.audit.page(account_id, Page(3))
        rest = await transaction.audit.page(account_id, Page(100, first[-1].id))
    assert [*first, *rest] == entries[::-1]


@pytest.fixture
async def trail(store: AnyStore, records: Records) -> list[AuditEntry]:
    """One entry in each second, newest first, and one of another account each time."""
    account_id, another = records.id(), records.id()
    made = [
        (A.WEBHOOK_CREATED, "user:1"),
        (A.WEBHOOK_DELETED, "key:1"),
        (A.KEY_CREATED, "user:10"),
        (A.WEBHOOK_CREATED, "operator"),
        (A.SIGNED_IN, "user:1"),
    ]
    entries = []
    async with store.transaction() as transaction:
        for action, actor in made:
            records.clock.advance(1)
            entry = records.audit_entry(account_id, action=action, actor=actor)
            entries.append(replace(entry, at=records.clock.now()))
            await transaction.audit.add(entry)
            await transaction.audit.add(replace(entry, account_id=another))
    return entries[::-1]


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        (AuditFilter(), [0, 1, 2, 3, 4]),
        (AuditFilter(actions=frozenset({A.WEBHOOK_CREATED})), [1, 4]),
        (AuditFilter(actions=frozenset({A.WEBHOOK_CREATED, A.KEY_CREATED})), [1, 2, 4]),
        (AuditFilter(actions=frozenset()), []),
        (AuditFilter(actor="user:1"), [0, 4]),
        (AuditFilter(actor="user"), [0, 2, 4]),
        (AuditFilter(actor="operator"), [1]),
        (AuditFilter(actor="USER"), []),
        (AuditFilter(actor="user%"), []),
        (AuditFilter(frozenset({A.WEBHOOK_CREATED}), "user"), [4]),
    ],
)
async def test_entries_are_filtered_by_action_and_actor(
    store: AnyStore, trail: list[AuditEntry], chosen: AuditFilter, expected: list[int]
) -> None:
    async with store.snapshot() as transaction:
        found = await transaction.audit.page(trail[0].account_id, ALL, chosen)
        rest = await transaction.audit.page(
            trail[0].account_id, Page(100, trail[1].id), chosen, trail[3].id
        )
    assert found == [trail[each] for each in expected]
    assert rest == [trail[each] for each in expected if each in (2, 3)]


async def test_entries_are_filtered_by_time(store: AnyStore, trail: list[AuditEntry]) -> None:
    account_id, times = trail[0].account_id, [each.at for each in trail]
    async with store.snapshot() as transaction:
        for chosen, page, expected in (
            (AuditFilter(since=times[2]), ALL, trail[:3]),
            (AuditFilter(until=times[2]), ALL, trail[3:]),
            (AuditFilter(since=times[3], until=times[1]), ALL, trail[2:4]),
            (AuditFilter(since=times[3], until=times[0]), Page(1, trail[1].id), trail[2:3]),
            (AuditFilter(since=times[0], until=times[4]), ALL, []),
        ):
            assert await transaction.audit.page(account_id, page, chosen) == expected, chosen


async def test_the_last_of_a_page_by_time_alone(store: AnyStore, trail: list[AuditEntry]) -> None:
    account_id = trail[0].account_id
    by_user = AuditFilter(actor="user", since=trail[3].at)
    async with store.snapshot() as transaction:
        last_of = transaction.audit.last_of
        assert await last_of(account_id, Page(2), by_user) == trail[1].id
        assert await last_of(account_id, Page(4), by_user) == trail[3].id
        assert await last_of(account_id, Page(5), by_user) is None
        assert await last_of(account_id, Page(2, trail[1].id), by_user) == trail[3].id
        assert await last_of(account_id, Page(1, trail[3].id), by_user) is None


async def test_each_search_reads_a_range_of_the_key_of_its_account(
    store: AnyStore, records: Records
) -> None:
    accounts = [records.id() for _ in range(30)]
    async with store.transaction() as transaction:
        assert isinstance(transaction, RecordsTransaction)
        for number in range(MANY):
            await transaction.audit.add(records.audit_entry(accounts[number % 30]))
    await asked(store, "ANALYZE")
    keys = ("sqlite_autoindex_audit_entries_1", "audit_entries_pkey")
    selective = AuditFilter(frozenset({A.WEBHOOK_CREATED}), "user")
    # The last one is not in the statistics, as the newest entries of a busy service are not.
    for chosen in (EVERY_ENTRY, selective, AuditFilter(since=records.clock.now())):
        for statement, values in (
            audit.page_of(accounts[0], Page(51), chosen, None),
            audit.page_of(accounts[0], Page(51, records.id()), chosen, accounts[1]),
            audit.last_of_page(accounts[0], Page(2_000, records.id()), chosen),
        ):
            plan = await plan_of(store, statement, values)
            assert any(key in plan for key in keys), plan
            for slow in ("SCAN audit_entries", "Seq Scan", "TEMP B-TREE", "Sort"):
                assert slow not in plan, plan


async def test_no_entry_of_another_account_is_found(store: AnyStore, records: Records) -> None:
    entry = records.audit_entry(records.id())
    async with store.transaction() as transaction:
        await transaction.audit.add(entry)
        for account_id in (records.id(), UUID(int=0)):
            chosen = AuditFilter(frozenset({entry.action}), entry.actor)
            assert await transaction.audit.page(account_id, ALL, chosen) == []
            assert await transaction.audit.last_of(account_id, Page(1), chosen) is None
