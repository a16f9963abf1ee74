"""The history of a store from before the counts is counted by the upgrade, as a full count is."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from cuepost.adapters.storage import tables
from cuepost.adapters.storage.migrations import old_counts
from cuepost.adapters.storage.sqlite import SqliteStore
from cuepost.domain.instants import instant_of
from cuepost.testing import SequentialIds, VirtualClock
from tests.conformance.test_delivery_counts import USUAL, Mix, mixed
from tests.migrations.conftest import Database
from tests.migrations.old_branches import OldBranches
from tests.migrations.plain_sql import make_days
from tests.migrations.test_old_history import CLOCK, opened
from tests.migrations.test_upgrading import upgrade_to
from tests.support.full_count import full_count, kept
from tests.support.records import Records
from tests.support.store_rows import rows

BEFORE_COUNTS = "0012"
ROUNDS = 25
COPIED = ("accounts", "projects", "endpoints", "queue", "deliveries", "attempts")
Rows = dict[str, list[dict[str, Any]]]


@pytest.fixture
async def busy(tmp_path: Path) -> AsyncIterator[Mix]:
    """A store of today, whose history has a bit of everything."""
    clock = VirtualClock()
    store = SqliteStore(tmp_path / "busy.sqlite3", clock)
    await store.open()
    try:
        mix = await mixed(store, Records(clock, SequentialIds()), seed=7)
        for _ in range(ROUNDS):
            for name in USUAL:
                await getattr(mix, name)()
            await mix.step()
        yield mix
    finally:
        await store.close()


async def history_of(mix: Mix) -> Rows:
    return {
        name: [each._asdict() for each in await rows(mix.store, sa.select(getattr(tables, name)))]
        for name in COPIED
    }


def write(connection: sa.Connection, copied: Rows) -> None:
    """As a release with the older schema had it: without the columns that are newer."""
    inspector = sa.inspect(connection)
    make_days(connection, *(instant_of(each["id"]) for each in copied["deliveries"]))
    for name, found in copied.items():
        table: sa.Table = getattr(tables, name)
        known = [each["name"] for each in inspector.get_columns(name)]
        old = sa.table(name, *(sa.column(each, table.c[each].type) for each in known))
        _insert(connection, old, [{each: row[each] for each in known} for row in found])


def _insert(
    connection: sa.Connection, table: sa.TableClause, made: Sequence[dict[str, Any]]
) -> None:
    if made:
        connection.execute(sa.insert(table), list(made))


@pytest.mark.parametrize("at_once", [1_000, 7])
async def test_a_varied_history_is_counted_as_it_was_recorded(
    database: Database, busy: Mix, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(old_counts, "ROWS_AT_ONCE", at_once)
    copied = await history_of(busy)
    await database.do(lambda connection: upgrade_to(BEFORE_COUNTS, connection))
    await database.do(lambda connection: write(connection, copied))
    await database.upgrade()
    async with opened(database) as store:
        found = await kept(store)
        assert found == await full_count(store)
    assert found == await kept(busy.store)
    assert {"delivered", "failed", "cancelled", "abandoned", "http_4xx", "http_5xx"} <= {
        name for *_, name in found
    }


async def test_history_that_is_first_moved_is_counted_too(database: Database) -> None:
    before = OldBranches(CLOCK.now())
    await database.do(lambda connection: upgrade_to("0006", connection))
    await database.do(before.fill)
    await database.upgrade()
    async with opened(database) as store:
        found = await kept(store)
        assert found == await full_count(store)
    assert {"delivered", "failed", "cancelled", "http_2xx", "timeout", "tls_error"} <= {
        name for *_, name in found
    }


async def test_a_store_without_history_has_nothing_to_count(database: Database) -> None:
    await database.do(lambda connection: upgrade_to(BEFORE_COUNTS, connection))
    await database.upgrade()
    async with opened(database) as store:
        assert await kept(store) == {}
