"""A busy PostgreSQL is dumped and restored, and brought back to a point in time, by the commands of
the documentation as they stand."""

import asyncio
import os
import re
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import asyncpg
import pytest
import sqlalchemy as sa

from cuepost.adapters.storage.tables import events
from tests.e2e.test_backup import EVENTS, carry_on
from tests.faults.harness import Harness, harness
from tests.support.postgres import PostgresServer, fresh_database_sync
from tests.support.service_process import Ended, ServiceProcess, free_port
from tests.support.store_rows import AnyStore, rows

OPERATIONS = Path(__file__).parents[2] / "docs" / "operations.md"
RESTORED = "cuepost_restored"
PATIENCE_SECONDS = 60.0


def documented(heading: str) -> list[str]:
    """The commands of a section, in order."""
    section = re.split(r"\n##+ ", OPERATIONS.read_text().partition(f"# {heading}\n")[2])[0]
    return re.findall(r"```sh\n(.*?)```", section, re.DOTALL)


def test_a_dump_of_a_busy_database_is_carried_on_with(tmp_path: Path) -> None:
    with PostgresServer() as server, fresh_database_sync(server.url) as url:
        restored = url.rpartition("/")[0] + f"/{RESTORED}"
        shell = Shell(server, CUEPOST_DATABASE_URL=url, RESTORED_URL=restored)
        dump, restore = documented("Back up and restore PostgreSQL")
        settings = {"DATA_DIR": str(tmp_path / "data"), "DATABASE_URL": url}
        with harness(settings) as it:
            with ServiceProcess(it.settings) as service, it.load() as load:
                load.wait_for(EVENTS)
                it.receiver.hold()
                load.wait_for(EVENTS)
                shell.run(dump)
                load.wait_for(EVENTS)
                it.receiver.release()
                load.stop()
                it.wait_until_settled()
                shell.run(restore)
                assert service.stop() == Ended(0, "")
            it.require_nothing_lost(load)
            carry_on(at(it, restored), len(load.acknowledged) + EVENTS)


@pytest.mark.timeout(300)
def test_a_busy_database_is_brought_back_to_a_point_in_time(tmp_path: Path) -> None:
    archive, back_up, recover = documented("To a point in time")
    with PostgresServer(durable=True) as server:
        shell = Shell(
            server,
            CUEPOST_DATABASE_URL=server.url,
            ARCHIVE=str(server.folder / "archive"),
            BASE_BACKUP=str(server.folder / "base"),
        )
        shell.run(archive)
        server.restart()
        settings = {"DATA_DIR": str(tmp_path / "data"), "DATABASE_URL": server.url}
        with harness(settings) as it:
            with ServiceProcess(it.settings) as service, it.load() as load:
                load.wait_for(EVENTS)
                shell.run(back_up)
                it.receiver.hold()
                load.wait_for(EVENTS)
                promised = set(load.acknowledged)
                moment = asyncio.run(clock_of(server.url))
                load.wait_for(EVENTS)
                it.receiver.release()
                load.stop()
                it.wait_until_settled()
                assert service.stop() == Ended(0, "")
            it.require_nothing_lost(load)
            server.stop()
            with Recovered(server, shell, recover, moment) as recovered:
                wait_until(lambda: "archive recovery complete" in recovered.log)
                assert "recovery stopping before commit" in recovered.log
                there = at(it, recovered.url)
                stored = there.ask(events_in)
                assert stored >= promised
                assert stored < load.acknowledged
                carry_on(there, len(load.acknowledged) + EVENTS)


class Shell:
    """Of the user that the server runs as."""

    def __init__(self, server: PostgresServer, **variables: str) -> None:
        self._server = server
        path = f"{server._binaries}:{os.environ['PATH']}"
        self._environ = os.environ | {"PATH": path} | variables

    def run(self, commands: str, **variables: str) -> None:
        user = self._server._user
        ran = subprocess.run(
            user.command(["/bin/sh", "-eu", "-c", commands]),
            cwd=self._server.folder,
            env=self._environ | variables,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            **user.popen_arguments(),
        )
        assert (ran.returncode, ran.stderr) == (0, "")


class Recovered(PostgresServer):
    """Its data are a base backup of another server and what that has archived until a moment."""

    def __init__(
        self, origin: PostgresServer, shell: Shell, commands: str, moment: datetime
    ) -> None:
        super().__init__(durable=True)
        self._password = origin._password
        self._binaries = origin._binaries
        self._shell = shell
        self._commands = commands
        self._moment = moment

    def _create_cluster(self) -> None:
        self._shell.run(self._commands, RECOVERED=str(self._data), MOMENT=str(self._moment))


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, "the recovery did not end"
        os.sched_yield()


async def clock_of(url: str) -> datetime:
    connection = await asyncpg.connect(url)
    try:
        reported: datetime = await connection.fetchval("SELECT clock_timestamp()")
        return reported
    finally:
        await connection.close()


async def events_in(store: AnyStore) -> set[str]:
    return {str(row.id) for row in await rows(store, sa.select(events.c.id))}


def at(it: Harness, url: str) -> Harness:
    settings = it.settings | {"DATABASE_URL": url, "PORT": str(free_port())}
    api_user = replace(it.api_user, base_url=f"http://127.0.0.1:{settings['PORT']}")
    return replace(it, settings=settings, api_user=api_user)
