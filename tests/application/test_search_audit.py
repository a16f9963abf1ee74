"""Searching the audit trail: what is found, how much is examined, and where to go on."""

from dataclasses import replace
from uuid import UUID

import pytest

from cuepost.application import search_audit
from cuepost.application.search_audit import Trail, searches
from cuepost.domain.access import Scope
from cuepost.domain.audit import Action, AuditEntry
from cuepost.domain.errors import MissingScope
from cuepost.ports.records import EVERY_ENTRY, AuditFilter, Page
from cuepost.ports.store import Transaction
from tests.application.harness import Harness
from tests.support.records import Records

DELETED = AuditFilter(frozenset({Action.WEBHOOK_DELETED}))


@pytest.fixture
async def trail(harness: Harness) -> list[AuditEntry]:
    """Ten entries, newest first; the two oldest are of deleted endpoints."""
    records, entries = Records(harness.clock, harness.ids), []
    for number in range(10):
        harness.clock.advance(1)
        action = Action.WEBHOOK_DELETED if number < 2 else Action.WEBHOOK_CREATED
        entries.append(records.audit_entry(harness.account.id, action=action))
    await harness.do(lambda transaction: _add(transaction, entries))
    return (await harness.audit())[:10]


async def _add(transaction: Transaction, entries: list[AuditEntry]) -> None:
    for entry in entries:
        await transaction.audit.add(entry)


async def found(harness: Harness, chosen: AuditFilter, page: Page) -> Trail:
    return await harness.see(harness.service.history.audit, harness.owner, chosen, page)


async def test_a_page_says_where_to_continue(harness: Harness, trail: list[AuditEntry]) -> None:
    first = await found(harness, EVERY_ENTRY, Page(4))
    assert first == Trail(trail[:4], trail[3].id)
    assert await found(harness, DELETED, Page(2)) == Trail(trail[8:], None)
    assert await found(harness, DELETED, Page(1)) == Trail(trail[8:9], trail[8].id)
    assert await found(harness, DELETED, Page(1, trail[8].id)) == Trail(trail[9:], None)


async def test_one_search_examines_a_limited_number_of_entries(
    harness: Harness, trail: list[AuditEntry], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_audit, "MOST_EXAMINED", 3)
    assert await found(harness, DELETED, Page(5)) == Trail([], trail[2].id)
    assert await found(harness, DELETED, Page(5, trail[5].id)) == Trail(trail[8:9], trail[8].id)
    # By time alone nothing is examined that is not shown.
    in_time = AuditFilter(until=trail[1].at)
    assert await found(harness, in_time, Page(5)) == Trail(trail[2:7], trail[6].id)
    seen: list[AuditEntry] = []
    before, pages = None, 0
    while pages == 0 or before is not None:
        part = await found(harness, DELETED, Page(1, before))
        seen, before, pages = [*seen, *part.entries], part.further, pages + 1
    assert (seen, pages) == (trail[8:], 4)


async def test_without_the_scope_the_trail_is_not_shown(harness: Harness) -> None:
    reader = replace(harness.owner, scopes=frozenset({Scope.WEBHOOKS_READ}))
    with pytest.raises(MissingScope):
        await harness.see(harness.service.history.audit, reader, EVERY_ENTRY, Page(1))


async def parts_of(harness: Harness, chosen: AuditFilter, limit: int) -> list[Trail]:
    return [part async for part in searches(lambda page: found(harness, chosen, page), limit)]


async def test_searches_go_on_to_the_end_or_to_the_limit(
    harness: Harness, trail: list[AuditEntry], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = await harness.audit()
    monkeypatch.setattr(search_audit, "AT_ONCE", 4)
    parts = await parts_of(harness, EVERY_ENTRY, 100)
    assert [entry for part in parts for entry in part.entries] == whole
    assert max(len(part.entries) for part in parts) == 4
    assert parts[-1].further is None
    parts = await parts_of(harness, EVERY_ENTRY, 6)
    assert [entry for part in parts for entry in part.entries] == whole[:6]
    assert parts[-1].further == whole[5].id
    parts = await parts_of(harness, DELETED, 2)
    assert parts == [Trail(trail[8:], None)]


async def test_searches_that_find_too_little_end_with_something_further(
    harness: Harness, trail: list[AuditEntry], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_audit, "MOST_EXAMINED", 3)
    monkeypatch.setattr(search_audit, "MOST_SEARCHES", 2)
    parts = await parts_of(harness, DELETED, 100)
    assert parts == [Trail([], trail[2].id), Trail([], trail[5].id)]
    assert isinstance(parts[-1].further, UUID)
