"""What was forgotten gives its room back to the disk, where the engine does not do so by itself."""

import sqlite3
from datetime import timedelta
from pathlib import Path

import sqlalchemy as sa

from cuepost.adapters.storage.sqlite import SqliteStore
from cuepost.adapters.system_clock import SystemClock
from cuepost.ports.retention import Expiring
from cuepost.testing import START
from tests.support.records import Records
from tests.support.store_rows import AnyStore, rows


async def test_an_embedded_store_gives_room_back_and_keeps_some_for_what_comes_next(
    tmp_path: Path, records: Records
) -> None:
    path = tmp_path / "cuepost.db"
    with sqlite3.connect(path) as file:
        file.execute("PRAGMA auto_vacuum = INCREMENTAL")
        file.execute("VACUUM")
    store = SqliteStore(path, SystemClock())
    await store.open()
    entries = [records.audit_entry(records.id()) for _ in range(2_000)]
    async with store.transaction() as transaction:
        for entry in entries:
            await transaction.audit.add(entry)
    async with store.transaction() as transaction:
        later = START + timedelta(days=1)
        await transaction.retention.delete_before(Expiring.AUDIT_TRAIL, later, len(entries))
    before = await pages(store)

    steps = 0
    while await has_free_pages(store):
        async with store.transaction() as transaction:
            assert await transaction.retention.return_free_pages(2)
        steps += 1

    total, free = await pages(store)
    await store.close()
    assert steps > 1
    assert total < before[0] / 2
    assert 0 < free <= total / 10


async def test_a_store_that_cannot_shrink_has_no_spare_room(store: AnyStore) -> None:
    if isinstance(store, SqliteStore):
        async with store.transaction() as transaction:
            while await transaction.retention.return_free_pages(100):
                """Making the schema has left some pages behind."""
            assert not await transaction.retention.return_free_pages(1)
    else:
        assert not await has_free_pages(store)


async def has_free_pages(store: AnyStore) -> bool:
    async with store.snapshot() as transaction:
        return await transaction.retention.has_free_pages()


async def pages(store: AnyStore) -> tuple[int, int]:
    statement = "SELECT page_count, freelist_count FROM pragma_page_count, pragma_freelist_count"
    [row] = await rows(store, sa.text(statement))
    return row.page_count, row.freelist_count
