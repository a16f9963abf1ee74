"""`cuepost backup`: one whole file that is its owner's alone, or none, and a line that says why."""

import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from cuepost.adapters.storage import sqlite_backup
from cuepost.bootstrap.runtime import NOT_EMBEDDED
from tests.interfaces.cli.terminal import Terminal
from tests.migrations.conftest import HEAD


@pytest.fixture
def store(empty_sqlite: Terminal) -> Path:
    empty_sqlite.words("setup")
    return Path(empty_sqlite.environ["CUEPOST_DATA_DIR"]) / "cuepost.sqlite3"


@pytest.fixture
def target(tmp_path: Path) -> Path:
    (tmp_path / "backups").mkdir()
    return tmp_path / "backups" / "cuepost.sqlite3"


def rows(path: Path, sql: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        return connection.execute(sql).fetchall()


def test_the_copy_is_one_file_for_its_owner_alone(
    empty_sqlite: Terminal, store: Path, target: Path
) -> None:
    said = empty_sqlite.json("backup", str(target))

    assert said == {
        "file": str(target),
        "sizeBytes": target.stat().st_size,
        "keepToo": {
            "masterKey": str(store.with_name("master.key")),
            "media": store.with_name("media").as_uri(),
        },
    }
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert rows(target, "SELECT version_num FROM alembic_version") == [(HEAD,)]
    assert rows(target, "SELECT id FROM accounts") == rows(store, "SELECT id FROM accounts")
    assert rows(target, "PRAGMA journal_mode") == [("delete",)]
    assert rows(target, "PRAGMA auto_vacuum") == [(2,)]
    assert os.listdir(target.parent) == [target.name]


def test_people_are_told_what_else_to_keep(
    empty_sqlite: Terminal, store: Path, target: Path
) -> None:
    mebibytes = store.stat().st_size / 1024 / 1024

    assert empty_sqlite.words("backup", str(target)) == (
        f"Copied the store to {target} ({mebibytes:.1f} MiB).\n"
        "\n"
        "It does not contain these; back them up as well:\n"
        "\n"
        f"  Master key  {store.with_name('master.key')}\n"
        f"  Media       {store.with_name('media').as_uri()}\n"
        "\n"
        "Without the master key the signing secrets in the copy cannot be decrypted.\n"
    )


def test_a_master_key_in_the_settings_is_named_and_not_shown(
    empty_sqlite: Terminal, target: Path
) -> None:
    key = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
    terminal = empty_sqlite.with_settings(MASTER_KEY=key)
    terminal.words("setup")

    assert terminal.json("backup", str(target))["keepToo"]["masterKey"] == "CUEPOST_MASTER_KEY"


def test_a_relative_path_is_from_here(
    empty_sqlite: Terminal, store: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(target.parent)

    assert empty_sqlite.json("backup", target.name)["file"] == str(target)


def test_the_copy_of_an_older_store_stays_older(
    empty_sqlite: Terminal, store: Path, target: Path
) -> None:
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0001'")
        connection.commit()

    empty_sqlite.words("backup", str(target))

    assert rows(target, "SELECT version_num FROM alembic_version") == [("0001",)]
    assert rows(store, "SELECT version_num FROM alembic_version") == [("0001",)]


def test_what_is_only_in_the_log_is_copied_too(
    empty_sqlite: Terminal, store: Path, target: Path
) -> None:
    with closing(sqlite3.connect(store)) as other:
        other.execute("UPDATE accounts SET name = 'only in the log'")
        other.commit()
        assert store.with_name(store.name + "-wal").stat().st_size

        empty_sqlite.words("backup", str(target))

    assert rows(target, "SELECT name FROM accounts") == [("only in the log",)]


@pytest.mark.usefixtures("store")
def test_a_file_that_is_there_is_never_overwritten(empty_sqlite: Terminal, target: Path) -> None:
    target.write_text("last week's backup")

    assert empty_sqlite.refusal("backup", str(target)) == (
        1,
        f"Error: {target} already exists; a backup never replaces a file.\n",
    )
    assert target.read_text() == "last week's backup"


@pytest.mark.usefixtures("store")
def test_a_file_that_comes_meanwhile_is_not_overwritten_either(
    empty_sqlite: Terminal, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_backup, "_sync", lambda _: target.write_text("someone else's"))

    code, said = empty_sqlite.refusal("backup", str(target))

    assert (code, "already exists" in said) == (1, True)
    assert target.read_text() == "someone else's"
    assert os.listdir(target.parent) == [target.name]


@pytest.mark.usefixtures("store")
def test_a_file_system_without_links_will_do(
    empty_sqlite: Terminal, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", refuse)

    empty_sqlite.words("backup", str(target))

    assert rows(target, "PRAGMA integrity_check") == [("ok",)]
    assert os.listdir(target.parent) == [target.name]


@pytest.mark.usefixtures("store")
def test_the_folder_of_the_copy_must_exist(empty_sqlite: Terminal, tmp_path: Path) -> None:
    assert empty_sqlite.refusal("backup", str(tmp_path / "nowhere" / "copy")) == (
        1,
        f"Error: The folder of the copy does not exist: {tmp_path}/nowhere.\n",
    )


def test_where_there_is_no_store_none_is_made(empty_sqlite: Terminal, target: Path) -> None:
    data_dir = Path(empty_sqlite.environ["CUEPOST_DATA_DIR"])

    assert empty_sqlite.refusal("backup", str(target)) == (
        1,
        f"Error: There is no store to copy: {data_dir}/cuepost.sqlite3 does not exist.\n",
    )
    assert not data_dir.exists()


def test_a_damaged_store_leaves_no_copy_that_someone_would_trust(
    empty_sqlite: Terminal, store: Path, target: Path
) -> None:
    page = rows(store, "PRAGMA page_size")[0][0]
    root = rows(store, "SELECT rootpage FROM sqlite_schema WHERE name = 'accounts'")[0][0]
    assert isinstance(page, int)
    assert isinstance(root, int)
    with store.open("r+b") as file:
        file.seek((root - 1) * page)
        file.write(b"\xff" * page)

    code, said = empty_sqlite.refusal("backup", str(target))

    assert code == 1
    assert said.startswith("Error: The store is damaged, so no copy of it is kept: ")
    assert said.count("\n") == 1
    assert os.listdir(target.parent) == []


def test_a_file_that_is_no_store_is_not_copied(
    empty_sqlite: Terminal, store: Path, target: Path
) -> None:
    store.write_text("a letter, and not a database")

    assert empty_sqlite.refusal("backup", str(target)) == (
        1,
        "Error: The store could not be copied: file is not a database.\n",
    )
    assert os.listdir(target.parent) == []


def test_postgresql_has_a_tool_of_its_own(empty_postgres: Terminal, target: Path) -> None:
    assert empty_postgres.refusal("backup", str(target)) == (
        1,
        f"Error: {NOT_EMBEDDED}\n",
    )
    assert os.listdir(target.parent) == []
