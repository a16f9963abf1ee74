"""PostgreSQL fails under load: the API says 503 meanwhile, recovers by itself, loses nothing."""

import asyncio
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import asyncpg
import pytest

from tests.e2e.story import health, request
from tests.faults.cutting_proxy import CuttingProxy
from tests.faults.world import World, world
from tests.support.load import Load
from tests.support.postgres import PostgresServer, StopMode, fresh_database_sync
from tests.support.service_process import ServiceProcess, free_port

RECOVERY_SECONDS = 5.0
EVENTS_PER_ROUND = 20
CUTS_PER_ROUND = 20
OURS = "FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()"
TERMINATED = f"SELECT count(pg_terminate_backend(pid)) {OURS}"
LISTENING = f"SELECT count(*) {OURS} AND application_name = 'cuepost wake-up'"
EVERYTHING = ("serve", "api", "worker")
pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def rounds() -> int:
    """How often the database fails; a long run asks for more."""
    return int(os.environ.get("CUEPOST_TEST_DATABASE_FAULTS", "1"))


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """With disk syncs as in production."""
    with PostgresServer(durable=True) as server:
        yield server


@pytest.fixture
def settings(server: PostgresServer, tmp_path: Path) -> Iterator[dict[str, str]]:
    with fresh_database_sync(server.url) as url:
        yield {"DATA_DIR": str(tmp_path / "data"), "DATABASE_URL": url}


@dataclass(slots=True)
class UnderLoad:
    it: World
    load: Load
    services: Sequence[ServiceProcess]

    def require_recovery(self, began: float) -> None:
        """The API takes reports again and receivers get them, without anybody's help."""
        self.load.wait_for(EVENTS_PER_ROUND)
        known = len(self.it.receiver.seen())
        self.it.receiver.wait_until(lambda now: len(now.requests) > known, "nothing is sent")
        took = time.monotonic() - began
        assert took < RECOVERY_SECONDS, took

    def require_all_well(self) -> None:
        self.load.wait_for(EVENTS_PER_ROUND)
        self.load.stop()
        self.it.wait_until_settled()
        for service in self.services:
            ended = service.stop()
            assert ended.code == 0
            assert "Traceback" not in ended.stderr, ended.stderr
        self.it.require_nothing_lost(self.load)
        # It was up all the time, and answered.
        assert self.load.answers[0] == 0


@contextmanager
def under_load(settings: dict[str, str], halves: Sequence[str]) -> Iterator[UnderLoad]:
    with world(settings) as it, ExitStack() as running:
        ports = [int(it.settings["PORT"]), *(free_port() for _ in halves[1:])]
        services = [
            running.enter_context(ServiceProcess(it.settings | {"PORT": str(port)}, half))
            for half, port in zip(halves, ports, strict=True)
        ]
        asked = [port for half, port in zip(halves, ports, strict=True) if half != "worker"]
        with it.load(*asked) as load:
            load.wait_for(EVENTS_PER_ROUND)
            yield UnderLoad(it, load, services)


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_restart(
    server: PostgresServer, settings: dict[str, str], mode: StopMode, rounds: int
) -> None:
    with under_load(settings, EVERYTHING) as case:
        for _ in range(rounds):
            began = time.time()
            server.stop(mode)
            try:
                require_503(case.it)
            finally:
                server.start()
            up_again = time.monotonic()
            case.it.outages.append((began, time.time()))
            case.require_recovery(up_again)
        assert case.load.answers[503] > 0
        case.require_all_well()


def require_503(it: World) -> None:
    visitor = it.visitor
    refused = request(visitor.base_url, visitor.keys.api, "GET", "/v1/projects")
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
    assert refused.json()["code"] == "store_unavailable"
    assert health(visitor.base_url) == [(200, "ok"), (503, "not_ready")]


def test_all_connections_dropped(settings: dict[str, str], rounds: int) -> None:
    with under_load(settings, EVERYTHING) as case:
        for _ in range(rounds):
            assert ask(settings["DATABASE_URL"], TERMINATED) > len(EVERYTHING)
            began = time.monotonic()
            while ask(settings["DATABASE_URL"], LISTENING) < len(EVERYTHING):
                assert time.monotonic() < began + RECOVERY_SECONDS, "nobody listens any more"
            case.require_recovery(began)
        case.require_all_well()


@pytest.mark.parametrize("halves", [("serve",), ("api", "worker")], ids="+".join)
def test_commits_of_which_nobody_is_told(
    settings: dict[str, str], halves: Sequence[str], rounds: int
) -> None:
    """Leased to a worker that does not know it, or recorded by one that has to say so again."""
    with (
        CuttingProxy(settings["DATABASE_URL"]) as wire,
        under_load(settings | {"DATABASE_URL": wire.url}, halves) as case,
    ):
        for _ in range(CUTS_PER_ROUND * rounds):
            wire.cut_next_commit()
        case.require_all_well()


def ask(url: str, question: str) -> int:
    async def fetch() -> int:
        connection = await asyncpg.connect(url, timeout=10)
        try:
            found: int = await connection.fetchval(question, timeout=10)
            return found
        finally:
            await connection.close()

    return asyncio.run(fetch())
