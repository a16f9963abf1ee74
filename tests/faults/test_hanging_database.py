"""PostgreSQL hangs instead of failing: callers are told in time, and what is told is true."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import asyncpg
import httpx2
import pytest

from tests.e2e.first_steps import health, request
from tests.faults.harness import Harness
from tests.faults.test_database_faults import (
    EVERYTHING,
    NOTICED_SECONDS,
    OURS,
    ask,
    command,
    require_not_ready,
    under_load,
)
from tests.support.coming_back import says_when_to_come_back
from tests.support.postgres import PostgresServer, fresh_database_sync

REQUEST_TIMEOUT = 2.0
# The machine of the tests may be busy.
SLACK_SECONDS = 3.0
WAITING = f"SELECT count(*) {OURS} AND wait_event_type IN ('Lock', 'IPC') AND state = 'active'"
pytestmark = pytest.mark.timeout(600)

Hanging = Callable[[str], AbstractContextManager[None]]


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with PostgresServer(durable=True) as server:
        yield server


@pytest.fixture
def settings(server: PostgresServer, tmp_path: Path) -> Iterator[dict[str, str]]:
    with fresh_database_sync(server.url) as url:
        yield {
            "DATA_DIR": str(tmp_path / "data"),
            "DATABASE_URL": url,
            "REQUEST_TIMEOUT": str(REQUEST_TIMEOUT),
        }


@contextmanager
def locked(url: str, table: str) -> Iterator[None]:
    """By a database session that stays in its transaction."""
    taken, over = threading.Event(), threading.Event()

    async def hold() -> None:
        connection = await asyncpg.connect(url, timeout=10)
        try:
            async with connection.transaction():
                await connection.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE", timeout=60)
                taken.set()
                await asyncio.to_thread(over.wait)
        finally:
            await connection.close()

    thread = threading.Thread(target=asyncio.run, args=(hold(),))
    thread.start()
    try:
        assert taken.wait(60)
        yield
    finally:
        over.set()
        thread.join(60)


@contextmanager
def without_its_standby(url: str) -> Iterator[None]:
    named = "ALTER SYSTEM SET synchronous_standby_names = 'nobody'"
    command(url, named, "SELECT pg_reload_conf()")
    try:
        yield
    finally:
        # Even this would wait for the standby.
        reset = "ALTER SYSTEM RESET synchronous_standby_names"
        command(url, "SET synchronous_commit = local", reset, "SELECT pg_reload_conf()")


def locking(table: str) -> Hanging:
    return lambda url: locked(url, table)


@pytest.mark.parametrize(
    "hanging",
    [locking("projects"), locking("queue"), without_its_standby],
    ids=["projects locked", "queue locked", "no standby"],
)
def test_callers_are_told_in_time_and_nothing_is_lost(
    settings: dict[str, str], hanging: Hanging
) -> None:
    with under_load(settings, EVERYTHING) as case:
        began = time.time()
        with hanging(settings["DATABASE_URL"]):
            require_not_ready(case.it)
            before = case.load.answers[503]
            answer, took = created(case.it, "Hung", "hung")
            if answer.status_code != 201:
                assert answer.status_code == 503
                assert says_when_to_come_back(answer.headers)
                assert took < REQUEST_TIMEOUT + SLACK_SECONDS
            deadline = time.monotonic() + 2 * (REQUEST_TIMEOUT + SLACK_SECONDS)
            while case.load.answers[503] < before + 2:
                assert time.monotonic() < deadline, case.load.answers
                case.load.pause()
            require_not_ready(case.it)
        case.it.outages.append((began, time.time()))
        require_ready_again(case.it)
        case.require_recovery(time.monotonic())
        case.require_all_well()
        assert ask(settings["DATABASE_URL"], WAITING) == 0


def test_a_change_that_was_cut_off_before_its_commit_was_not_made(
    settings: dict[str, str],
) -> None:
    with under_load(settings, ("serve",)) as case:
        with locked(settings["DATABASE_URL"], "projects"):
            cut, _ = created(case.it, "Cut off", "cut-off")
        assert cut.status_code == 503
        assert "nothing was changed" in cut.json()["detail"]
        assert names(case.it).count("Cut off") == 0
        assert created(case.it, "Cut off", "cut-off")[0].status_code == 201
        assert names(case.it).count("Cut off") == 1


def test_a_change_that_was_cut_off_in_its_commit_may_have_been_made(
    settings: dict[str, str],
) -> None:
    with under_load(settings, ("serve",)) as case:
        case.load.stop()
        with without_its_standby(settings["DATABASE_URL"]):
            cut, _ = created(case.it, "Cut off", "cut-off")
            assert cut.status_code == 503
            assert "the change may have been made" in cut.json()["detail"]
        require_ready_again(case.it)
        again, _ = created(case.it, "Cut off", "cut-off")
        assert (again.status_code, again.headers["idempotency-replayed"]) == (201, "true")
        assert names(case.it).count("Cut off") == 1


def created(it: Harness, name: str, key: str) -> tuple[httpx2.Response, float]:
    began = time.monotonic()
    headers = {"Authorization": f"Bearer {it.api_user.keys.api}", "Idempotency-Key": key}
    answer = httpx2.post(
        f"{it.api_user.base_url}/v1/projects",
        json={"name": name},
        headers=headers,
        timeout=60,
        trust_env=False,
    )
    return answer, time.monotonic() - began


def names(it: Harness) -> list[str]:
    found = request(it.api_user.base_url, it.api_user.keys.api, "GET", "/v1/projects?limit=100")
    return [each["name"] for each in found.json()["data"]]


def require_ready_again(it: Harness) -> None:
    deadline = time.monotonic() + NOTICED_SECONDS + SLACK_SECONDS
    while health(it.api_user.base_url)[1] != (200, "ready"):
        assert time.monotonic() < deadline, "it is not ready any more"
