"""Projects are found by the beginning of their name, among all of an account, through an index."""

from dataclasses import replace

import pytest

from cuepost.adapters.storage.records import projects
from cuepost.adapters.storage.records.paging import LAST
from cuepost.adapters.storage.sql import Sql
from cuepost.adapters.storage.transaction import RecordsTransaction
from cuepost.domain.access import Account
from cuepost.domain.project import Project
from tests.conformance.test_account_plans import asked, plan_of
from tests.support.records import Records
from tests.support.store_rows import AnyStore

MANY = 5_000


async def added(store: AnyStore, records: Records, *names: str) -> list[Project]:
    """Projects of one account, in the order of their names."""
    account = records.account()
    made = [records.project(account.id, name=name) for name in names]
    async with store.transaction() as transaction:
        await transaction.accounts.add(account)
        for each in made:
            await transaction.projects.add(each)
    return made


async def found(store: AnyStore, of: Project, prefix: str, limit: int = 20) -> list[str]:
    async with store.snapshot() as transaction:
        rows = await transaction.projects.search(of.account_id, prefix, limit)
        return [each.name for each in rows]


async def test_the_beginning_of_a_name_is_enough_in_any_case(
    store: AnyStore, records: Records
) -> None:
    names = ("Straße", "Trailer", "trailer 2", "TRÄUME", "Ärger", "100 %", "a_b", "A trailer")
    made = (await added(store, records, *names))[0]
    await added(store, records, "Trailer of another account")
    assert await found(store, made, "trailer") == ["Trailer", "trailer 2"]
    assert await found(store, made, "tr") == ["Trailer", "trailer 2", "TRÄUME"]
    assert await found(store, made, "strasse") == ["Straße"]
    assert await found(store, made, "ärg") == ["Ärger"]
    # No character has another meaning in a search.
    assert await found(store, made, "100 %") == ["100 %"]
    assert await found(store, made, "a_") == ["a_b"]
    assert await found(store, made, "%") == []
    assert await found(store, made, "", limit=2) == ["100 %", "A trailer"]


async def test_a_renamed_project_is_found_by_its_new_name_and_a_deleted_one_by_none(
    store: AnyStore, records: Records
) -> None:
    first, second = await added(store, records, "Before", "Deleted")
    async with store.transaction() as transaction:
        gone = replace(second, deleted_at=records.clock.now())
        await transaction.projects.save([replace(first, name="After"), gone])
    assert await found(store, first, "") == ["After"]
    assert await found(store, first, "before") == []


async def test_projects_of_an_older_version_are_named_in_steps(
    store: AnyStore, records: Records
) -> None:
    made = (await added(store, records, "One", "Two", "Three"))[0]
    async with store.transaction() as transaction:
        assert isinstance(transaction, RecordsTransaction)
        await transaction.session.execute(Sql("UPDATE projects SET search_name = NULL"))
    for left in (True, True, False):
        async with store.transaction() as transaction:
            assert await transaction.projects.lacks_search_names() is left
            assert await transaction.projects.name_for_search(2) is left
    assert await found(store, made, "") == ["One", "Three", "Two"]


@pytest.fixture
async def account(store: AnyStore, records: Records) -> Account:
    """With many projects, beside another one with as many."""
    accounts = [records.account(), records.account()]
    async with store.transaction() as transaction:
        assert isinstance(transaction, RecordsTransaction)
        for account in accounts:
            await transaction.accounts.add(account)
            for number in range(MANY):
                name = f"Film {number}"
                await transaction.projects.add(records.project(account.id, name=name))
    await asked(store, "ANALYZE")
    return accounts[0]


async def test_a_search_among_thousands_reads_the_index_in_its_order(
    store: AnyStore, account: Account
) -> None:
    values = {"account_id": account.id, "prefix": "film 49", "ending": f"film 49{LAST}", "most": 20}
    plan = await plan_of(store, projects._FOUND, values)
    assert "projects_by_search_name" in plan, plan
    for slow in ("SCAN projects\n", "Seq Scan", "TEMP B-TREE", "AUTOMATIC"):
        assert slow not in f"{plan}\n", plan
    plan = await plan_of(store, projects._ANY_WITHOUT_SEARCH_NAME, {})
    assert "projects_without_search_name" in plan, plan
    async with store.snapshot() as transaction:
        rows = await transaction.projects.search(account.id, "film 49", 20)
    expected = sorted(f"Film {number}" for number in range(MANY) if str(number).startswith("49"))
    assert [each.name for each in rows] == expected[:20]
