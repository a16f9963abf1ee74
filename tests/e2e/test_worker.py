"""`cuepost worker` beside `cuepost api`, and what each of them says of its health."""

from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.e2e.first_steps import ApiUser, keys_in
from tests.support.postgres import fresh_database_sync
from tests.support.recording_receiver import RecordingReceiver
from tests.support.service_process import PATIENCE_SECONDS, Ended, ServiceProcess, free_port, run


@pytest.fixture
def receiver() -> Iterator[RecordingReceiver]:
    with RecordingReceiver() as receiver:
        yield receiver


@pytest.fixture
def settings(
    tmp_path: Path, receiver: RecordingReceiver, postgres_url: str
) -> Iterator[dict[str, str]]:
    with fresh_database_sync(postgres_url) as url:
        yield {
            "DATA_DIR": str(tmp_path / "data"),
            "DATABASE_URL": url,
            "MASTER_KEY": b64encode(bytes(32)).decode(),
            "PORT": str(free_port()),
            "RECEIVER_HTTP": "true",
            "RECEIVER_NETWORKS": "127.0.0.0/8",
            "RECEIVER_PORTS": str(receiver.port),
        }


def readiness(settings: dict[str, str], port: str = "PORT") -> Any:
    answer = look(settings[port], "/readyz")
    return answer.status_code, answer.json()


def look(port: str, path: str) -> httpx2.Response:
    return httpx2.get(f"http://127.0.0.1:{port}{path}", trust_env=False, timeout=PATIENCE_SECONDS)


def test_the_halves_together_deliver(settings: dict[str, str], receiver: RecordingReceiver) -> None:
    refused = run(settings, "worker")
    assert (refused.returncode, refused.stderr) == (
        1,
        "Error: The database has no cuepost schema yet; run 'cuepost migrate'.\n",
    )
    keys = keys_in(run(settings, "setup").stdout)
    assert keys is not None

    with (
        ServiceProcess(settings, "api") as api,
        ServiceProcess(settings, "worker", fresh=True) as worker,
    ):
        api_user = ApiUser(f"http://127.0.0.1:{settings['PORT']}", keys)
        api_user.post("/v1/webhooks", {"url": receiver.url("/hook")})
        api_user.finish_a_project()
        receiver.wait_until(lambda now: len(now.requests) == 1, "nothing was delivered")

        assert "is delivering; Ctrl-C stops it.\n\n  Store  postgresql://" in worker.greeting
        assert readiness(settings) == (200, {"status": "ready", "checks": {"store": "ok"}})
        assert worker.stop() == Ended(0, "")
        [delivery] = api_user.get("/v1/deliveries")["data"]
        assert delivery["status"] == "delivered"
        assert api.stop() == Ended(0, "")


def test_who_delivers_says_whether_it_does(settings: dict[str, str]) -> None:
    assert run(settings, "migrate").returncode == 0
    with ServiceProcess(settings):
        well = {"status": "ready", "checks": {"store": "ok", "dispatcher": "ok"}}
        assert readiness(settings) == (200, well)


def test_a_worker_shows_its_health_and_metrics_where_it_is_told_to(
    settings: dict[str, str], receiver: RecordingReceiver
) -> None:
    keys = keys_in(run(settings, "setup").stdout)
    assert keys is not None
    chosen = settings | {"WORKER_PORT": str(free_port()), "LOG_LEVEL": "info"}

    with ServiceProcess(settings, "api"), ServiceProcess(chosen, "worker") as worker:
        api_user = ApiUser(f"http://127.0.0.1:{settings['PORT']}", keys)
        api_user.post("/v1/webhooks", {"url": receiver.url("/hook")})
        api_user.finish_a_project()
        receiver.wait_until(lambda now: len(now.requests) == 1, "nothing was delivered")

        well = {"status": "ready", "checks": {"store": "ok", "dispatcher": "ok"}}
        assert readiness(chosen, "WORKER_PORT") == (200, well)
        assert look(chosen["WORKER_PORT"], "/healthz").status_code == 200
        assert look(chosen["WORKER_PORT"], "/v1/webhooks").status_code == 404
        ended = worker.stop()
    assert ended.code == 0
    [line] = [line for line in ended.stderr.splitlines() if " cuepost.attempt: " in line]
    assert " outcome=delivered status=200 " in line


def test_a_port_that_is_taken_is_named(settings: dict[str, str]) -> None:
    assert run(settings, "migrate").returncode == 0
    with ServiceProcess(settings, "api"):
        refused = run(settings | {"WORKER_PORT": settings["PORT"]}, "worker")
    where = f"Port {settings['PORT']} on 127.0.0.1"
    advice = "stop what uses it, or set CUEPOST_WORKER_PORT."
    assert refused.returncode == 1
    assert refused.stderr == f"Error: {where} is already in use; {advice}\n"
