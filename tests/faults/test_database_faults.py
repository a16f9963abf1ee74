"""PostgreSQL fails under load: the API answers 503, recovers by itself, and loses nothing."""

import asyncio
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import asyncpg
import pytest

from tests.e2e.first_steps import health, request
from tests.faults.cutting_proxy import CuttingProxy
from tests.faults.harness import Harness, harness
from tests.support.coming_back import says_when_to_come_back
from tests.support.load import Load
from tests.support.postgres import PostgresServer, StopMode, fresh_database_sync
from tests.support.service_process import ServiceProcess, environment, free_port, start

RECOVERY_SECONDS = 5.0
NOTICED_SECONDS = 2.0
READ_ONLY_SECONDS = 5.0
REPORTED_SECONDS = 20.0
EVENTS_PER_ROUND = 20
CUTS_PER_ROUND = 20
OURS = "FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()"
TERMINATED = f"SELECT count(pg_terminate_backend(pid)) {OURS}"
LISTENING = f"SELECT count(*) {OURS} AND application_name = 'cuepost wake-up'"
EVERYTHING = ("serve", "api", "worker")
REFUSED = "refused on purpose"
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
    it: Harness
    load: Load
    services: Sequence[ServiceProcess]

    def require_recovery(self, began: float, within: float = RECOVERY_SECONDS) -> None:
        """The API takes reports again and receivers get them, without anybody's help."""
        self.load.wait_for(EVENTS_PER_ROUND)
        known = len(self.it.receiver.seen())
        self.it.receiver.wait_until(lambda now: len(now.requests) > known, "nothing is sent")
        took = time.monotonic() - began
        assert took < within, took

    def wait_until_reported(self, fault: str) -> None:
        deadline = time.monotonic() + REPORTED_SECONDS
        while not any(fault in service.said for service in self.services):
            assert time.monotonic() < deadline, "no process has met the fault"

    def require_all_well(self, reported: str | None = None) -> None:
        """Every process is there still; only of a fault that it is `told` it may show all."""
        self.load.wait_for(EVENTS_PER_ROUND)
        self.load.stop()
        self.it.wait_until_settled()
        for service in self.services:
            ended = service.stop()
            assert ended.code == 0, ended.stderr
            faults = ended.stderr.split("Traceback")[1:]
            assert all(reported is not None and reported in fault for fault in faults), ended.stderr
        self.it.require_nothing_lost(self.load)
        # It was up all the time, and answered.
        assert self.load.answers[0] == 0


@contextmanager
def under_load(settings: dict[str, str], halves: Sequence[str]) -> Iterator[UnderLoad]:
    with harness(settings) as it, ExitStack() as running:
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


def test_a_server_that_becomes_read_only(
    server: PostgresServer, settings: dict[str, str], rounds: int
) -> None:
    """As after a failover to a standby: every connection is there, and nothing can be written."""
    with under_load(settings, EVERYTHING) as case:
        for _ in range(rounds):
            began = time.time()
            with read_only(server.url):
                require_not_ready(case.it)
                require_503(case.it, "POST", "/v1/projects", {"name": "Cut"})
                until = time.monotonic() + READ_ONLY_SECONDS
                while time.monotonic() < until:
                    require_not_ready(case.it)
            case.it.outages.append((began, time.time()))
            case.require_recovery(time.monotonic())
        assert case.load.answers[503] > 0
        case.require_all_well()


@pytest.mark.parametrize(
    ("table", "sqlstate"),
    [("queue", "58030"), ("deliveries", "XX000"), ("workers", "42P01")],
)
def test_statements_that_the_server_refuses(
    settings: dict[str, str], table: str, sqlstate: str
) -> None:
    """An I/O error, a fault inside the server, and mistakes of ours: every process goes on."""
    with under_load(settings, ("api", "worker")) as case:
        began = time.time()
        with refusing(settings["DATABASE_URL"], table, sqlstate):
            case.wait_until_reported(REFUSED)
        case.it.outages.append((began, time.time()))
        case.require_recovery(time.monotonic())
        case.require_all_well(reported=REFUSED)


def test_a_start_waits_for_the_database(
    server: PostgresServer, settings: dict[str, str], tmp_path: Path
) -> None:
    with under_load(settings, ("serve",)) as case:
        case.require_all_well()
        log = tmp_path / "log"
        with log.open("wb") as file:
            server.stop("fast")
            try:
                process = start(environment(case.it.settings), "worker", stderr=file)
                deadline = time.monotonic() + REPORTED_SECONDS
                while b"event=waiting_for_database" not in log.read_bytes():
                    assert time.monotonic() < deadline, "it waits in silence"
            finally:
                server.start()
            with process:
                assert process.stdout is not None
                greeting = next(line for line in process.stdout if line.strip())
                process.terminate()
        assert (process.returncode, b"cuepost" in greeting) == (0, True), log.read_text()


def require_not_ready(it: Harness) -> None:
    deadline = time.monotonic() + NOTICED_SECONDS
    while health(it.api_user.base_url)[1] != (503, "not_ready"):
        assert time.monotonic() < deadline, "it claims to be ready"


@contextmanager
def read_only(url: str) -> Iterator[None]:
    reported = "ALTER SYSTEM {} default_transaction_read_only"
    command(url, reported.format("SET") + " = on", "SELECT pg_reload_conf()")
    try:
        yield
    finally:
        command(url, reported.format("RESET"), "SELECT pg_reload_conf()")


@contextmanager
def refusing(url: str, table: str, sqlstate: str) -> Iterator[None]:
    command(
        url,
        f"""
        CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE '{REFUSED}' USING ERRCODE = '{sqlstate}'; END $$
        """,
        f"CREATE TRIGGER refusing BEFORE INSERT OR UPDATE OR DELETE ON {table} "
        "FOR EACH STATEMENT EXECUTE FUNCTION refuse()",
    )
    try:
        yield
    finally:
        command(url, f"DROP TRIGGER refusing ON {table}", "DROP FUNCTION refuse()")


def require_503(
    it: Harness, method: str = "GET", path: str = "/v1/projects", body: object = None
) -> None:
    api_user = it.api_user
    refused = request(api_user.base_url, api_user.keys.api, method, path, body)
    assert refused.status_code == 503
    assert says_when_to_come_back(refused.headers)
    assert refused.json()["code"] == "store_unavailable"
    assert health(api_user.base_url) == [(200, "ok"), (503, "not_ready")]


def test_all_connections_dropped(settings: dict[str, str], rounds: int) -> None:
    with under_load(settings, EVERYTHING) as case:
        for _ in range(rounds):
            assert ask(settings["DATABASE_URL"], TERMINATED) > len(EVERYTHING)
            began = time.monotonic()
            while ask(settings["DATABASE_URL"], LISTENING) < len(EVERYTHING):
                assert time.monotonic() < began + RECOVERY_SECONDS, "no process listens any more"
            case.require_recovery(began)
        case.require_all_well()


@pytest.mark.parametrize("halves", [("serve",), ("api", "worker")], ids="+".join)
def test_commits_whose_result_is_lost(
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


def command(url: str, *statements: str) -> None:
    """Although the server may be read-only for everybody else."""

    async def execute() -> None:
        writable = {"default_transaction_read_only": "off"}
        connection = await asyncpg.connect(url, timeout=10, server_settings=writable)
        try:
            for statement in statements:
                await connection.execute(statement, timeout=10)
        finally:
            await connection.close()

    asyncio.run(execute())


def ask(url: str, question: str) -> int:
    async def fetch() -> int:
        connection = await asyncpg.connect(url, timeout=10)
        try:
            found: int = await connection.fetchval(question, timeout=10)
            return found
        finally:
            await connection.close()

    return asyncio.run(fetch())
