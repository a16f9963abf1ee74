"""The migrations lead to the very schema that the tables describe."""

from typing import Any

import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from cuepost.adapters.storage import schema
from cuepost.adapters.storage.tables import PARTITIONED, metadata
from tests.migrations.conftest import Database
from tests.migrations.reflection import Schema, schema_of


async def created(database: Database) -> Schema:
    await database.do(metadata.create_all)
    made = await database.do(schema_of)
    await database.do(metadata.drop_all)
    return made


async def migrated(database: Database) -> Schema:
    await database.upgrade()
    return await database.do(schema_of)


async def test_create_all_and_upgrade_make_the_same_schema(database: Database) -> None:
    expected = await created(database)
    assert await migrated(database) == expected


async def test_autogenerate_finds_nothing_left_to_do(database: Database) -> None:
    def compare(connection: sa.Connection) -> list[Any]:
        options = {"compare_type": True, "compare_server_default": True}
        context = MigrationContext.configure(connection, opts=options)
        found = compare_metadata(context, metadata)
        return [each for each in found if not is_identity_of_sqlite(connection, each)]

    await database.upgrade()
    assert await database.do(compare) == []


def is_identity_of_sqlite(connection: sa.Connection, difference: Any) -> bool:
    """It has none, and numbers the rows of such a table by itself."""
    return connection.dialect.name == "sqlite" and isinstance(difference[0][-1], sa.Identity)


async def test_history_is_partitioned_and_the_queue_is_kept_loose(postgres: Database) -> None:
    found = await migrated(postgres)
    partitioned = {name for name in found["tables"] if "RANGE" in name}
    assert partitioned == {
        "('attempts', b'p', None, 'RANGE (delivery_id)')",
        "('deliveries', b'p', None, 'RANGE (id)')",
        "('events', b'p', None, 'RANGE (id)')",
    }
    assert len(partitioned) == len(PARTITIONED)
    [queue] = [name for name in found["tables"] if name.startswith("('queue'")]
    assert "fillfactor=70" in queue
    assert "autovacuum_vacuum_scale_factor=0.02" in queue


def test_the_migrations_are_one_line_without_branches() -> None:
    scripts = ScriptDirectory(str(schema.MIGRATIONS))
    revisions = [script.revision for script in scripts.walk_revisions()]
    assert revisions == sorted(revisions, reverse=True)
    assert len(scripts.get_bases()) == len(scripts.get_heads()) == 1


def test_each_file_of_a_migration_is_named_after_it() -> None:
    """What a start compares with, without loading a single one of them."""
    scripts = ScriptDirectory(str(schema.MIGRATIONS))
    revisions = [script.revision for script in scripts.walk_revisions()]
    assert list(schema.revisions()) == revisions[::-1]
