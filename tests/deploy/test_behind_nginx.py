"""Behind nginx, as the kit configures it: APIs and workers that are restarted under load."""

import os
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.e2e.first_steps import Keys, keys_in
from tests.support.nginx import KIT, Proxy, configured, running_nginx
from tests.support.operator_tools import program
from tests.support.postgres import fresh_database_sync
from tests.support.recording_receiver import RecordingReceiver
from tests.support.service_process import ServiceProcess, free_port, run

PATIENCE_SECONDS = 60.0
ROUNDS = int(os.environ.get("CUEPOST_TEST_ROLLING_RESTARTS", "1"))
CALLERS = 4
LIST_TOOLS = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
ACCEPTED = "application/json, text/event-stream"


@pytest.mark.parametrize("name", ["cuepost.conf", "compose.conf"])
def test_nginx_accepts_the_configuration(name: str, tmp_path: Path) -> None:
    proxy = configured(tmp_path, (free_port(), free_port()))
    if name == "compose.conf":
        text = (KIT / name).read_text().replace("api:8000", "127.0.0.1:8000")
        text = text.replace("/etc/nginx/cuepost-locations.conf", str(KIT / "locations.conf"))
        (tmp_path / "cuepost.conf").write_text(text)
    checked = program("nginx").run("-t", "-p", tmp_path, "-c", proxy.folder / "nginx.conf")
    assert checked.returncode == 0, checked.stderr
    assert "[warn]" not in checked.stderr


@dataclass(slots=True)
class Load:
    """Callers that report milestones one after another, through the proxy."""

    proxy: Proxy
    keys: Keys
    projects: list[str]
    accepted: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)
    progress: threading.Condition = field(default_factory=threading.Condition)

    def call(self, project: str) -> None:
        number = 0
        with self.proxy.client(self.keys.service) as client:
            while not self.stopping.is_set():
                number += 1
                self._report(client, project, number)

    def _report(self, client: httpx2.Client, project: str, number: int) -> None:
        reports = [
            {"reportId": f"{project}-{number}-{status}", "projectId": project, "status": status}
            for status in ("exporting", "completed")
        ]
        answer = client.post("/v1/milestones", json={"milestones": reports})
        if answer.status_code != 200:
            self.refused.append(f"{answer.status_code} {answer.text[:200]}")
            return
        for result in answer.json()["results"]:
            if not result["accepted"]:
                self.refused.append(str(result))
            elif result["notified"]:
                with self.progress:
                    self.accepted.append(result["eventId"])
                    self.progress.notify_all()

    @contextmanager
    def running(self) -> Iterator[None]:
        threads = [threading.Thread(target=self.call, args=(each,)) for each in self.projects]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self.stopping.set()
            for thread in threads:
                thread.join(PATIENCE_SECONDS)

    def wait_for(self, more: int) -> None:
        """Until that many further events have been accepted."""
        with self.progress:
            wanted = len(self.accepted) + more
            arrived = self.progress.wait_for(lambda: len(self.accepted) >= wanted, PATIENCE_SECONDS)
        assert arrived, self.refused[:3]


def test_a_rolling_restart_under_load_loses_and_refuses_nothing(
    tmp_path: Path, postgres_url: str
) -> None:
    ports, worker_ports = (free_port(), free_port()), (free_port(), free_port())
    proxy = configured(tmp_path, ports)
    with ExitStack() as stack:
        receiver = stack.enter_context(RecordingReceiver())
        url = stack.enter_context(fresh_database_sync(postgres_url))
        settings = settings_of(tmp_path, url, receiver, proxy)
        keys = keys_in(run(settings, "setup").stdout)
        assert keys is not None
        halves = [("api", {"PORT": str(port)}) for port in ports]
        halves += [("worker", {"WORKER_PORT": str(port)}) for port in worker_ports]

        def started(half: str, more: dict[str, str]) -> ServiceProcess:
            return stack.enter_context(ServiceProcess(settings | more, half))

        services = [started(half, more) for half, more in halves]
        stack.enter_context(running_nginx(proxy))
        load = Load(proxy, keys, populated(proxy, keys, receiver))
        with load.running():
            load.wait_for(10)
            for _ in range(ROUNDS):
                for place, (half, more) in enumerate(halves):
                    assert services[place].stop().code == 0
                    load.wait_for(5)
                    services[place] = started(half, more)
                    load.wait_for(5)
        assert load.refused == []
        assert len(load.accepted) >= 10 * (1 + 4 * ROUNDS)
        wanted = set(load.accepted)
        receiver.wait_until(
            lambda now: wanted <= {each.event_id for each in now.seen()}, "some did not arrive"
        )


def settings_of(
    folder: Path, url: str, receiver: RecordingReceiver, proxy: Proxy
) -> dict[str, str]:
    return {
        "DATA_DIR": str(folder / "data"),
        "DATABASE_URL": url,
        "MASTER_KEY": b64encode(bytes(32)).decode(),
        "BASE_URL": proxy.url,
        "RECEIVER_HTTP": "true",
        "RECEIVER_NETWORKS": "127.0.0.0/8",
        "RECEIVER_PORTS": str(receiver.port),
        "ENDPOINT_CONCURRENCY": "64",
    }


def populated(proxy: Proxy, keys: Keys, receiver: RecordingReceiver) -> list[str]:
    """An endpoint, and a project for each caller that has been exported once."""
    projects: list[str] = []
    with proxy.client(keys.api) as client, proxy.client(keys.service) as pipeline:
        made = client.post("/v1/webhooks", json={"url": receiver.url("/hook")})
        assert made.status_code == 201, made.text
        for _ in range(CALLERS):
            project: dict[str, Any] = client.post("/v1/projects", json={"name": "Trailer"}).json()
            report = {"reportId": project["id"], "projectId": project["id"], "status": "processing"}
            answer = pipeline.post("/v1/milestones", json={"milestones": [report]})
            assert answer.status_code == 200, answer.text
            projects.append(project["id"])
    return projects


def test_the_proxy_hides_the_metrics_and_passes_agents_and_request_ids_on(tmp_path: Path) -> None:
    ports = (free_port(), free_port())
    proxy = configured(tmp_path, ports)
    settings = {"DATA_DIR": str(tmp_path / "data"), "PORT": str(ports[0]), "BASE_URL": proxy.url}
    with ServiceProcess(settings) as service, running_nginx(proxy), proxy.client() as client:
        keys = keys_in(service.greeting)
        assert keys is not None
        assert client.get("/metrics").status_code == 404
        with proxy.client(keys.api) as agent:
            listed = agent.post("/mcp", json=LIST_TOOLS, headers={"Accept": ACCEPTED})
        assert listed.status_code == 200, listed.text
        # One of the two is not there; no one notices.
        answers = [client.get("/healthz") for _ in range(4)]
        assert [answer.status_code for answer in answers] == [200] * 4
        ids = {answer.headers["x-request-id"] for answer in answers}
        assert len(ids) == 4
        assert all(len(each) == 32 for each in ids), "not those of nginx"
