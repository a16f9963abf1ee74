"""Lists of history and figures come from a hot standby, and from the primary when it is no good."""

import asyncio
import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any

import asyncpg
import httpx2
import pytest

from tests.e2e.first_steps import request
from tests.faults.harness import Harness, harness
from tests.faults.test_database_faults import command
from tests.support.postgres import PostgresServer
from tests.support.postgres_standby import PostgresStandby
from tests.support.service_process import ServiceProcess, free_port, run

DATABASE = "cuepost"
PATIENCE_SECONDS = 30.0
USED, UNUSED = "event=replica_used", "event=replica_unused"
NOTICE = "old, because the database replica lags"
READERS = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'reader'"
PAUSE, RESUME = "SELECT pg_wal_replay_pause()", "SELECT pg_wal_replay_resume()"
pytestmark = pytest.mark.timeout(300)


@dataclass(slots=True)
class Case:
    it: Harness
    primary: PostgresServer
    standby: PostgresStandby
    service: ServiceProcess

    def book(self) -> str:
        """A project with events; its id."""
        return self.it.api_user.finish_a_project()

    def listed(self, project_id: str) -> httpx2.Response:
        return self.get(f"/v1/events?projectId={project_id}")

    def shows(self, project_id: str) -> bool:
        return bool(self.listed(project_id).json()["data"])

    def get(self, path: str) -> httpx2.Response:
        answer = request(self.it.api_user.base_url, self.it.api_user.keys.api, "GET", path)
        assert answer.status_code == 200, answer.text
        return answer

    def wait_until_read(self) -> None:
        """A change that the standby has not replayed is not listed."""
        until(lambda: self.shows(self.book()))
        command(self.on_standby(), PAUSE)
        until(lambda: not self.shows(self.book()))

    def wait_until_unread(self, why: str) -> None:
        until(lambda: self.get("/v1/events").is_success and UNUSED in self.service.said)
        assert why in self.service.said

    def on_standby(self) -> str:
        return self.standby.url.rpartition("/")[0] + f"/{DATABASE}"


@contextmanager
def replicated(tmp_path: Path, max_lag: float, half: str = "serve") -> Iterator[Case]:
    with PostgresServer(durable=True) as primary, PostgresStandby(primary) as standby:
        command(primary.url, f"CREATE DATABASE {DATABASE}")
        of_standby = standby.url.rpartition("/")[0]
        settings = {
            "DATA_DIR": str(tmp_path / "data"),
            "DATABASE_URL": primary.url.rpartition("/")[0] + f"/{DATABASE}",
            "DATABASE_REPLICA_URL": f"{of_standby}/{DATABASE}?application_name=reader",
            "DATABASE_REPLICA_MAX_LAG": str(max_lag),
            "LOG_LEVEL": "info",
        }
        with harness(settings) as it, ServiceProcess(it.settings, half) as service:
            yield Case(it, primary, standby, service)


def test_lists_come_from_the_replica_and_say_if_it_is_behind(tmp_path: Path) -> None:
    with replicated(tmp_path, 600) as case, closing(signed_in(case.it)) as pages:
        seen = case.book()
        until(lambda: case.shows(seen))
        assert asked(case.on_standby(), READERS) > 0
        assert asked(case.it.settings["DATABASE_URL"], READERS) == 0
        assert "Replica-Lag" not in case.listed(seen).headers
        assert NOTICE not in pages.get("/settings/events").text

        command(case.on_standby(), PAUSE)
        unseen = case.book()
        until(lambda: int(case.listed(unseen).headers.get("Replica-Lag", "0")) > 0)
        assert not case.shows(unseen)
        page = pages.get(f"/settings/events?project={unseen}")
        assert NOTICE in page.text
        assert "project.completed</code>" not in page.text
        for path in ("/settings/webhooks", "/settings/deliveries", "/settings/audit"):
            assert NOTICE in pages.get(path).text
        reported = events_told_to_agent(case.it, unseen)
        assert json.loads(reported[0])["data"] == []
        assert "s old" in reported[1]
        # What was just changed, and what is asked for by its id, is never old.
        assert case.get(f"/v1/projects/{unseen}").json()["status"] == "completed"
        hook = case.it.api_user.post("/v1/webhooks", {"url": case.it.receiver.url("/hook")})
        deliveries = case.get(f"/v1/webhooks/{hook['id']}/deliveries")
        assert deliveries.json()["data"] == []

        command(case.on_standby(), RESUME)
        until(lambda: case.shows(unseen))
        assert UNUSED not in case.service.said


def test_a_replica_that_is_too_far_behind_is_not_read(tmp_path: Path) -> None:
    with replicated(tmp_path, 1) as case:
        until(lambda: case.shows(case.book()))
        command(case.on_standby(), PAUSE)
        case.wait_until_unread("it is behind by")
        for _ in range(3):
            answer = case.listed(case.book())
            assert answer.json()["data"]
            assert "Replica-Lag" not in answer.headers
        command(case.on_standby(), RESUME)
        until(lambda: case.get("/v1/events").is_success and USED in case.service.said)
        assert case.service.said.count(UNUSED) == 1


def test_without_the_replica_the_primary_answers(tmp_path: Path) -> None:
    with replicated(tmp_path, 600) as case:
        case.wait_until_read()
        case.standby.stop("kill")
        for _ in range(20):
            assert case.shows(case.book())
        assert case.service.said.count(UNUSED) == 1
        case.standby.start()
        case.wait_until_read()
        assert case.service.said.count(UNUSED) == 1


def test_a_replica_that_was_promoted_is_not_read(tmp_path: Path) -> None:
    """It goes its own way beside the primary."""
    with replicated(tmp_path, 600) as case:
        until(lambda: case.shows(case.book()))
        case.standby.promote()
        case.wait_until_unread("it is not a standby")
        for _ in range(3):
            assert case.shows(case.book())


def test_a_replica_that_is_down_at_the_start_and_a_worker_that_needs_none(tmp_path: Path) -> None:
    with replicated(tmp_path, 600) as case:
        case.standby.stop("fast")
        settings = case.it.settings | {"PORT": str(free_port())}
        with ServiceProcess(settings, "api") as api, ServiceProcess(settings, "worker") as worker:
            url = f"http://127.0.0.1:{settings['PORT']}"
            answer = request(url, case.it.api_user.keys.api, "GET", "/v1/deliveries")
            assert answer.status_code == 200
            assert api.said.count(UNUSED) == 1
            assert worker.stop().code == 0
            assert UNUSED not in worker.said


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, "it never came to that"


def asked(url: str, question: str) -> Any:
    async def ask() -> Any:
        connection = await asyncpg.connect(url)
        try:
            return await connection.fetchval(question)
        finally:
            await connection.close()

    return asyncio.run(ask())


def signed_in(it: Harness) -> httpx2.Client:
    """A client of the pages, signed in by a link."""
    accounts = json.loads(run(it.settings, "accounts", "list", "--json").stdout)
    made = run(it.settings, "accounts", "sign-in-link", accounts["data"][0]["id"])
    link = re.search(r"http://\S+/sign-in/\S+", made.stdout)
    assert link is not None, made.stdout
    client = httpx2.Client(
        base_url=it.api_user.base_url, timeout=20, trust_env=False, follow_redirects=True
    )
    token = re.search(r'name="_token" value="([^"]*)"', client.get(link[0]).text)
    assert token is not None
    answer = client.post(
        link[0], data={"_token": unescape(token[1])}, headers={"Origin": it.api_user.base_url}
    )
    assert answer.status_code == 200
    return client


def events_told_to_agent(it: Harness, project_id: str) -> list[str]:
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "events_list", "arguments": {"project_id": project_id}},
    }
    headers = {
        "Authorization": f"Bearer {it.api_user.keys.api}",
        "Accept": "application/json, text/event-stream",
    }
    answer = httpx2.post(
        f"{it.api_user.base_url}/mcp", json=call, headers=headers, timeout=20, trust_env=False
    )
    return [each["text"] for each in answer.json()["result"]["content"]]
