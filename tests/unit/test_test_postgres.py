"""The PostgreSQL that tests start for themselves."""

import os
import select
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from tests.support.missing import missing_component
from tests.support.postgres import (
    PostgresDidNotStart,
    PostgresServer,
    StopMode,
    create_database,
    database_name,
    drop_database,
    fresh_database,
    fresh_database_sync,
    plain_url,
)
from tests.support.postgres_binaries import ServerUser, readable_binaries, server_binaries

LIMIT = 20


async def fetch(url: str, query: str) -> object:
    connection = await asyncpg.connect(url, timeout=LIMIT)
    try:
        return await connection.fetchval(query, timeout=LIMIT)
    finally:
        await connection.close()


async def execute(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url, timeout=LIMIT)
    try:
        await connection.execute(statement, timeout=LIMIT)
    finally:
        await connection.close()


def wait_for_the_end_of(pid: int) -> None:
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        ended, _, _ = select.select([process], [], [], LIMIT)
    finally:
        os.close(process)
    assert ended == [process]


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with PostgresServer() as started:
        yield started


async def test_a_test_gets_an_empty_database_of_a_real_server(postgres_database: str) -> None:
    assert await fetch(postgres_database, "SELECT version() LIKE 'PostgreSQL %'") is True
    tables = "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public'"
    assert await fetch(postgres_database, tables) == 0


async def test_databases_are_apart_and_leave_nothing_behind(postgres_url: str) -> None:
    async with fresh_database(postgres_url) as one, fresh_database(postgres_url) as other:
        await execute(one, "CREATE TABLE only_here (id int)")
        assert await fetch(one, "SELECT to_regclass('only_here')::text") == "only_here"
        assert await fetch(other, "SELECT to_regclass('only_here')::text") is None

    left = f"SELECT count(*) FROM pg_database WHERE datname = '{database_name(one)}'"
    assert await fetch(postgres_url, left) == 0


async def test_a_database_with_open_connections_is_dropped_all_the_same(postgres_url: str) -> None:
    url = await create_database(postgres_url)
    connection = await asyncpg.connect(url, timeout=LIMIT)

    await drop_database(postgres_url, url)

    with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError, ConnectionError)):
        await connection.fetchval("SELECT 1", timeout=LIMIT)
    connection.terminate()


async def test_a_prepared_database_serves_as_template(postgres_url: str) -> None:
    async with fresh_database(postgres_url) as prepared:
        await execute(prepared, "CREATE TABLE prepared AS SELECT 42 AS answer")
        async with fresh_database(postgres_url, template=database_name(prepared)) as copy:
            assert await fetch(copy, "SELECT answer FROM prepared") == 42


def test_a_database_is_also_made_without_a_coroutine(postgres_url: str) -> None:
    with fresh_database_sync(postgres_url) as url:
        assert database_name(url).startswith("cuepost_")


@pytest.mark.parametrize("mode", ["smart", "fast", "immediate", "kill"])
async def test_a_private_server_keeps_its_data_and_address_over_a_restart(
    server: PostgresServer, mode: StopMode
) -> None:
    async with fresh_database(server.url) as url:
        await execute(url, "CREATE TABLE kept AS SELECT 1 AS n")
        server.restart(mode)
        assert await fetch(url, "SELECT n FROM kept") == 1


async def test_a_killed_server_comes_back_although_clients_were_connected(
    server: PostgresServer,
) -> None:
    clients = [await asyncpg.connect(server.url, timeout=LIMIT) for _ in range(10)]

    server.restart("kill")

    assert await fetch(server.url, "SELECT 1") == 1
    for client in clients:
        client.terminate()


async def test_a_stopped_server_refuses_connections(server: PostgresServer) -> None:
    server.stop()
    assert not server.is_running
    with pytest.raises(OSError, match="refused"):
        await asyncpg.connect(server.url, timeout=LIMIT)
    server.start()
    assert await fetch(server.url, "SELECT 1") == 1


def test_a_server_that_does_not_start_says_why_and_leaves_no_files(tmp_path: Path) -> None:
    binaries = tmp_path / "broken" / "bin"
    binaries.mkdir(parents=True)
    for name in ("postgres", "initdb"):
        (binaries / name).write_text("#!/bin/sh\necho refused on purpose >&2\nexit 1\n")
        (binaries / name).chmod(0o755)

    server = PostgresServer(binaries)
    with pytest.raises(PostgresDidNotStart, match="refused on purpose"), server:
        pass
    assert not server.folder.exists()


def test_a_server_ends_with_the_process_that_started_it() -> None:
    start_and_die = (
        "import os; from tests.support.postgres import PostgresServer;"
        "server = PostgresServer(); server.start();"
        "print(server.pid, server.folder, flush=True); os._exit(1)"
    )
    run = subprocess.run(
        [sys.executable, "-c", start_and_die],
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert run.returncode == 1, run.stderr
    pid, folder = run.stdout.split()
    wait_for_the_end_of(int(pid))
    shutil.rmtree(folder)


def test_binaries_that_the_server_user_cannot_reach_are_copied(tmp_path: Path) -> None:
    class Unable(ServerUser):
        def can_run(self, binaries: Path) -> bool:
            return False

    original = next(server_binaries())
    copied = readable_binaries(original, Unable(None, None), tmp_path)

    assert copied.is_relative_to(tmp_path)
    assert ServerUser(None, None).can_run(copied)


@pytest.mark.parametrize(
    "url",
    ["postgresql://u@h:1/d", "postgres://u@h:1/d", "postgresql+asyncpg://u@h:1/d"],
)
def test_a_given_url_may_name_a_driver(url: str) -> None:
    assert plain_url(url) == "postgresql://u@h:1/d"


def test_a_missing_component_skips_the_test_of_a_developer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no such server"):
        missing_component("no such server")


def test_a_missing_component_fails_the_test_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no such server"):
        missing_component("no such server")
