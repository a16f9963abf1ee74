"""How many connections a process has to PostgreSQL, as docs/operations.md says."""

import asyncio
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import asyncpg
import pytest

from tests.e2e.first_steps import request
from tests.faults.harness import Harness, harness
from tests.support.postgres import PostgresServer, fresh_database_sync
from tests.support.service_process import ServiceProcess, free_port

OPERATIONS = Path(__file__).parents[2] / "docs" / "operations.md"
CONNECTIONS = 4
CALLERS = 3 * CONNECTIONS
PATIENCE_SECONDS = 8.0
HALVES = ("serve", "api", "worker")
COUNTED = "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1"
FORMULAS = {"1": 1, "`DATABASE_CONNECTIONS`": CONNECTIONS, "none": 0}


def documented() -> dict[str, tuple[int, int]]:
    """The most connections of each kind of process: for its work, and for wake-ups."""
    section = OPERATIONS.read_text().partition("\n### Connections per process\n")[2]
    found = re.findall(r"^\| `(\w+)` \| (\S+) \| (\S+) \|", section.partition("\n##")[0], re.M)
    return {half: (FORMULAS[work], FORMULAS[wakeup]) for half, work, wakeup in found}


@pytest.fixture
def it(tmp_path: Path) -> Iterator[Harness]:
    with PostgresServer() as server, fresh_database_sync(server.url) as url:
        settings = {
            "DATA_DIR": str(tmp_path / "data"),
            "DATABASE_URL": url,
            "DATABASE_CONNECTIONS": str(CONNECTIONS),
        }
        with harness(settings) as made:
            yield made


def test_no_process_has_more_connections_than_documented(it: Harness) -> None:
    """Even if more callers wait for a locked table than there are connections."""
    ports = {half: free_port() for half in HALVES}
    with ExitStack() as running:
        for half, port in ports.items():
            running.enter_context(ServiceProcess(named(it, half) | {"PORT": str(port)}, half))
        with (
            ThreadPoolExecutor(2 * CALLERS) as callers,
            Watch(it.settings["DATABASE_URL"]) as watch,
        ):
            with watch.locked("endpoints"):
                urls = [f"http://127.0.0.1:{ports[half]}" for half in ("serve", "api")] * CALLERS
                key = it.api_user.keys.api
                answers = [callers.submit(request, url, key, "GET", "/v1/webhooks") for url in urls]
                for half in ("serve", "api"):
                    watch.wait_for(half, CONNECTIONS)
            assert {answer.result().status_code for answer in answers} == {200}
            most = {half: (watch.most(half), watch.most(f"{half} wake-up")) for half in HALVES}
    expected = documented()
    assert most.keys() == expected.keys()
    assert most["serve"] == expected["serve"]
    assert most["api"] == expected["api"]
    assert 0 < most["worker"][0] <= expected["worker"][0]
    assert most["worker"][1] == expected["worker"][1]


def named(it: Harness, half: str) -> dict[str, str]:
    """Its connections tell whose they are."""
    url = it.settings["DATABASE_URL"]
    return it.settings | {
        "DATABASE_URL": f"{url}?application_name={half}",
        "DATABASE_DIRECT_URL": f"{url}?application_name={half}%20wake-up",
    }


class Watch:
    """Counts connections while something happens."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._runner = asyncio.Runner()
        self._most: dict[str, int] = {}

    def __enter__(self) -> "Watch":
        self._connection = self._runner.run(asyncpg.connect(self._url))
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.run(self._connection.close())
        self._runner.close()

    @contextmanager
    def locked(self, table: str) -> Iterator[None]:
        self._execute(f"BEGIN; LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        try:
            yield
        finally:
            self._execute("COMMIT")

    def wait_for(self, name: str, count: int) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self._look(name) < count:
            assert time.monotonic() < deadline, f"{name} has {self._look(name)} connections"

    def most(self, name: str) -> int:
        return max(self._look(name), self._most.get(name, 0))

    def _look(self, name: str) -> int:
        found = int(self._runner.run(self._connection.fetchval(COUNTED, name)))
        self._most[name] = max(found, self._most.get(name, 0))
        return found

    def _execute(self, statement: str) -> None:
        self._runner.run(self._connection.execute(statement))
