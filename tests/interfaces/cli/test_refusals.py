"""What an operator can fix is said in one line, with exit code 1 or 2, and without a secret."""

import asyncio
import re
import sqlite3
from pathlib import Path

import asyncpg
import pytest

from cuepost.interfaces.cli.output import refusal_reason
from tests.interfaces.cli.terminal import Terminal
from tests.support.service_process import free_port

COMMANDS = [("serve",), ("api",), ("setup",), ("migrate",), ("accounts", "list"), ("keys", "list")]
NEWER = "UPDATE alembic_version SET version_num = '9999', oldest_code = '9999'"
MADE_BY_A_NEWER_VERSION = (
    "Error: The database's schema (9999) was made by a newer cuepost; "
    "start that version, or one newer still.\n"
)


def data_dir(terminal: Terminal) -> Path:
    return Path(terminal.environ["CUEPOST_DATA_DIR"])


@pytest.mark.parametrize("command", COMMANDS)
def test_a_bad_setting_stops_every_command_before_anything_is_opened(
    empty_sqlite: Terminal, command: tuple[str, ...]
) -> None:
    assert empty_sqlite.with_settings(PROT="1").refusal(*command) == (
        2,
        "Error: CUEPOST_PROT is not a setting of cuepost; did you mean CUEPOST_PORT?\n",
    )
    assert not data_dir(empty_sqlite).exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_that_is_no_store_is_left_alone(
    empty_sqlite: Terminal, command: tuple[str, ...]
) -> None:
    data_dir(empty_sqlite).mkdir()
    store = data_dir(empty_sqlite) / "cuepost.sqlite3"
    store.write_text("a letter, and not a database")

    terminal = empty_sqlite.with_settings(PORT=str(free_port()))
    assert terminal.refusal(*command) == (1, f"Error: This is not an SQLite file: {store}.\n")
    assert store.read_text() == "a letter, and not a database"


def test_the_folder_of_a_named_store_must_exist(empty_sqlite: Terminal, tmp_path: Path) -> None:
    terminal = empty_sqlite.with_settings(DATABASE_URL=f"sqlite:///{tmp_path}/nowhere/store.db")

    assert terminal.refusal("accounts", "list") == (
        1,
        f"Error: The folder of the store does not exist: {tmp_path}/nowhere.\n",
    )


def test_a_folder_in_the_place_of_the_store_is_refused(
    empty_sqlite: Terminal, tmp_path: Path
) -> None:
    terminal = empty_sqlite.with_settings(DATABASE_URL=f"sqlite:///{tmp_path}/folder")
    (tmp_path / "folder").mkdir()

    assert terminal.refusal("accounts", "list") == (
        1,
        f"Error: The store cannot be read and written: {tmp_path}/folder.\n",
    )


def test_a_file_in_the_place_of_the_data_folder_is_refused(empty_sqlite: Terminal) -> None:
    data_dir(empty_sqlite).write_text("")

    assert empty_sqlite.refusal("accounts", "list") == (
        1,
        f"Error: File exists ({data_dir(empty_sqlite)}).\n",
    )


def test_a_master_key_that_others_can_read_is_refused(empty_sqlite: Terminal) -> None:
    empty_sqlite.words("setup")
    (data_dir(empty_sqlite) / "master.key").chmod(0o644)

    code, said = empty_sqlite.refusal("accounts", "list")

    assert code == 1
    assert said.startswith("Error: The master key file is open to others (mode 0644): run 'chmod")
    assert said.count("\n") == 1


@pytest.mark.parametrize("command", COMMANDS)
def test_an_embedded_schema_of_a_newer_version_is_refused(
    empty_sqlite: Terminal, command: tuple[str, ...]
) -> None:
    empty_sqlite.words("setup")
    with sqlite3.connect(data_dir(empty_sqlite) / "cuepost.sqlite3") as connection:
        connection.execute(NEWER)
    connection.close()

    assert empty_sqlite.with_settings(PORT=str(free_port())).refusal(*command) == (
        1,
        MADE_BY_A_NEWER_VERSION,
    )


def test_a_postgres_schema_of_a_newer_version_is_refused(ready_postgres: Terminal) -> None:
    async def date_forward() -> None:
        connection = await asyncpg.connect(ready_postgres.environ["CUEPOST_DATABASE_URL"])
        await connection.execute(NEWER)
        await connection.close()

    asyncio.run(date_forward())
    terminal = ready_postgres.with_settings(PORT=str(free_port()))

    assert {terminal.refusal(*command) for command in COMMANDS} == {(1, MADE_BY_A_NEWER_VERSION)}


@pytest.mark.parametrize("command", [("accounts", "list"), ("serve",), ("api",)])
def test_an_empty_postgres_says_which_command_is_missing(
    empty_postgres: Terminal, command: tuple[str, ...]
) -> None:
    assert empty_postgres.with_settings(PORT=str(free_port())).refusal(*command) == (
        1,
        "Error: The database has no cuepost schema yet; run 'cuepost migrate'.\n",
    )


def test_a_postgres_that_does_not_answer_is_one_line(empty_sqlite: Terminal) -> None:
    url = f"postgresql://user:canary-password@127.0.0.1:{free_port()}/name"

    code, said = empty_sqlite.with_settings(DATABASE_URL=url).refusal("accounts", "list")

    assert code == 1
    assert re.fullmatch(r"Error: the database connection failed: .*refused.*\n", said)
    assert "canary-password" not in said


@pytest.mark.parametrize(
    ("pattern", "replacement", "why"),
    [
        ("//postgres:[^@]*@", "//postgres:canary-password@", "password authentication failed"),
        ("$", "_nowhere", "does not exist"),
    ],
)
def test_a_postgres_that_does_not_let_us_in_is_one_line(
    postgres_url: str, empty_sqlite: Terminal, pattern: str, replacement: str, why: str
) -> None:
    url = re.sub(pattern, replacement, postgres_url, count=1)

    code, said = empty_sqlite.with_settings(DATABASE_URL=url).refusal("setup")

    assert code == 1
    assert re.fullmatch(rf"Error: the database is not available: .*{why}.*\n", said)
    assert "canary-password" not in said


@pytest.mark.parametrize(
    ("result", "sentence"),
    [
        ({"reason": "illegal_transition"}, "illegal_transition."),
        (
            {
                "reason": "invalid",
                "errors": [
                    {"field": "status", "code": "invalid_value", "message": "Choose another."},
                    {"field": "x\x1b[2J", "code": "unknown_field", "message": "It is not known."},
                ],
            },
            "invalid. status: Choose another. x�[2J: It is not known.",
        ),
    ],
)
def test_a_refused_milestone_is_told_with_its_errors(
    result: dict[str, object], sentence: str
) -> None:
    assert refusal_reason(result) == sentence
