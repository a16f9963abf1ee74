"""Migrations say which versions can run on the schema they leave, and keep to the rules."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.script import Script, ScriptDirectory

from cuepost.adapters.storage import schema
from cuepost.adapters.storage.postgres_upgrading import upgrade_postgres
from cuepost.adapters.storage.upgrading import oldest_code
from tests.migrations.conftest import Database
from tests.migrations.online_rules import broken_rules
from tests.migrations.test_upgrading import upgrade_to
from tests.support.code_versions import add_migrations

STEP_DONE = "UPDATE alembic_version SET version_num"
OWN = ("SELECT", "UPDATE alembic_version", "INSERT INTO alembic_version")


def online_migrations() -> list[Script]:
    """From the first that says who can run on it, oldest first."""
    scripts = list(ScriptDirectory(str(schema.MIGRATIONS)).walk_revisions())[::-1]
    while not hasattr(scripts[0].module, "oldest_code"):
        del scripts[0]
    return scripts


@contextmanager
def statements() -> Iterator[list[str]]:
    """Every statement that SQLAlchemy sends to any database inside the block."""
    said: list[str] = []

    def note(_: Any, __: Any, statement: str, *___: Any) -> None:
        said.append(statement.strip())

    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    try:
        yield said
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", note)


async def found_in(postgres: Database) -> list[str]:
    """What is wrong with the migrations after the first."""
    [first, *rest] = online_migrations()
    await postgres.do(lambda connection: upgrade_to(first.revision, connection))
    with statements() as said:
        await upgrade_postgres(postgres.url, with_downtime=True)
    steps: list[list[str]] = [[]]
    for statement in said:
        if statement.startswith(STEP_DONE):
            steps.append([])
        elif not statement.startswith(OWN):
            steps[-1].append(statement)
    found: list[str] = []
    before = oldest_code(first)
    for script, step in zip(rest, steps[:-1], strict=True):
        oldest = oldest_code(script)
        found += broken_rules(
            step, is_for_older=oldest <= before, is_online=oldest < script.revision
        )
        before = max(before, oldest)
    return found


async def test_migrations_keep_to_the_rules(postgres: Database) -> None:
    assert await found_in(postgres) == []


def test_every_migration_says_who_can_run_on_it() -> None:
    known = schema.revisions()
    for script in online_migrations():
        stated = getattr(script.module, "oldest_code", None)
        assert stated in known, f"{script.revision} has to state its oldest_code"
        assert stated <= script.revision


@pytest.mark.parametrize(
    "upgrade",
    [
        'op.drop_table("inboxes")',
        'op.drop_column("queue", "budget")',
        'op.alter_column("queue", "budget", new_column_name="limit")',
        'op.alter_column("queue", "budget", type_=sa.BigInteger())',
        'op.alter_column("queue", "worker", nullable=False)',
        'op.add_column("queue", sa.Column("added", sa.Integer(), nullable=False))',
        'op.create_check_constraint("positive", "queue", "budget >= 0")',
        'op.create_index("added", "queue", ["worker"], unique=True)',
        'op.create_index("added", "queue", ["budget"])',
        'op.execute("ALTER TABLE queue ADD COLUMN added uuid DEFAULT gen_random_uuid()")',
        'op.execute("UPDATE queue SET budget = 1")',
        'op.execute("DELETE FROM queue")',
        '[op.add_column(each, sa.Column("added", sa.Text())) for each in ("queue", "events")]',
    ],
)
async def test_one_that_breaks_a_rule_is_found(
    postgres: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, upgrade: str
) -> None:
    assert await found_with(postgres, tmp_path, monkeypatch, upgrade)


@pytest.mark.parametrize(
    "upgrade",
    [
        'op.create_table("added", sa.Column("id", sa.Integer(), primary_key=True, index=True))',
        'op.add_column("queue", sa.Column("added", sa.Text()))',
        'op.add_column("queue", sa.Column("added", sa.Text(), server_default="", nullable=False))',
        'create_index_concurrently("added", "queue", ["budget"], where="budget > 1")',
        'create_index_concurrently("added", "deliveries", ["budget"])',
    ],
)
async def test_one_that_keeps_to_them_passes(
    postgres: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, upgrade: str
) -> None:
    assert await found_with(postgres, tmp_path, monkeypatch, upgrade) == []


@pytest.mark.parametrize(
    "upgrade",
    [
        'op.drop_column("queue", "budget")',
        'op.execute("ALTER TABLE queue ADD CONSTRAINT c CHECK (budget > 0) NOT VALID")',
    ],
)
async def test_one_that_shuts_out_older_code_has_to_say_so(
    postgres: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, upgrade: str
) -> None:
    """The version before, 9001, goes on; the one before that does not."""
    table = 'op.create_table("added", sa.Column("id", sa.Integer(), primary_key=True))'
    assert await found_with(postgres, tmp_path, monkeypatch, table, upgrade, oldest="9001") == []


async def found_with(
    postgres: Database,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    *upgrades: str,
    oldest: str | None = None,
) -> list[str]:
    location = folder / "migrations"
    shutil.copytree(schema.MIGRATIONS, location, ignore=shutil.ignore_patterns("__pycache__"))
    as_before = max(oldest_code(each) for each in online_migrations())
    add_migrations(location, *upgrades, oldest_code=oldest or as_before)
    monkeypatch.setattr(schema, "MIGRATIONS", location)
    schema.revisions.cache_clear()
    try:
        return await found_in(postgres)
    finally:
        schema.revisions.cache_clear()
