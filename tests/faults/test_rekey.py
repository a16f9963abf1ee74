"""`cuepost rekey` beside a busy service, killed again and again; then the old key is taken away."""

import json
import os
import pty
import signal
import threading
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.e2e.first_steps import ApiUser, Keys
from tests.support.history_checker import Seen, signature_fits
from tests.support.postgres import fresh_database_sync
from tests.support.recording_receiver import RecordingReceiver
from tests.support.service_process import ServiceProcess, environment, free_port, run, start

KILLS = int(os.environ.get("CUEPOST_TEST_REKEY_KILLS", "3"))
ANSWERS = 250 * (KILLS + 3)
OLD, NEW = (b64encode(bytes([each] * 32)).decode() for each in (1, 2))
ENDPOINTS = 4


@pytest.fixture
def receiver() -> Iterator[RecordingReceiver]:
    with RecordingReceiver() as receiver:
        yield receiver


@pytest.fixture(params=["sqlite", "postgresql"])
def settings(
    request: pytest.FixtureRequest, tmp_path: Path, receiver: RecordingReceiver
) -> Iterator[dict[str, str]]:
    common = {
        "DATA_DIR": str(tmp_path / "data"),
        "PORT": str(free_port()),
        "MASTER_KEY": OLD,
        "RECEIVER_HTTP": "true",
        "RECEIVER_NETWORKS": "127.0.0.0/8",
        "RECEIVER_PORTS": str(receiver.port),
        "RATE_LIMIT": "1000000",
    }
    if request.param == "sqlite":
        yield common
        return
    with fresh_database_sync(request.getfixturevalue("postgres_url")) as url:
        yield common | {"DATABASE_URL": url}


class Load:
    """Finishes projects one after the other, until it is told to stop."""

    def __init__(self, api_user: ApiUser) -> None:
        self._api_user = api_user
        self._stop = threading.Event()
        self.finished: list[str] = []
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Load":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            self.finished.append(self._api_user.finish_a_project())


def fill(api_user: ApiUser, receiver: RecordingReceiver) -> tuple[dict[str, str], str]:
    """Secrets by the path of their endpoints, and the answer to one of many idempotent requests."""
    secrets = {
        f"/{each}": api_user.post("/v1/webhooks", {"url": receiver.url(f"/{each}")})["secret"]
        for each in range(ENDPOINTS)
    }
    headers = {"authorization": f"Bearer {api_user.keys.api}"}
    with httpx2.Client(base_url=api_user.base_url, headers=headers, timeout=60) as client:
        for each in range(ANSWERS):
            answer = create_once(client, each)
    return secrets, answer.text


def create_once(client: httpx2.Client, number: int) -> httpx2.Response:
    key = {"idempotency-key": f"project-{number}"}
    answer = client.post("/v1/projects", json={"name": f"{number}"}, headers=key)
    assert answer.status_code == 201
    return answer


def killed_in_the_middle(settings: dict[str, str]) -> None:
    ours, theirs = pty.openpty()
    with start(environment(settings), "rekey", stderr=theirs) as process:
        os.close(theirs)
        said = b""
        while b"Encrypting" not in said and process.poll() is None:
            said += os.read(ours, 1_024)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    os.close(ours)
    assert process.returncode == -signal.SIGKILL


def stored_under(settings: dict[str, str]) -> dict[str, int]:
    found: dict[str, int] = json.loads(run(settings, "rekey", "--dry-run", "--json").stdout)[
        "storedUnderKey"
    ]
    return found


def test_nothing_is_lost(settings: dict[str, str], receiver: RecordingReceiver) -> None:
    made = json.loads(run(settings, "setup", "--json").stdout)
    api_user = ApiUser(
        f"http://127.0.0.1:{settings['PORT']}", Keys(made["apiKey"], made["serviceKey"])
    )
    with ServiceProcess(settings) as service:
        secrets, answer = fill(api_user, receiver)
        [(old_key, before)] = stored_under(settings).items()
        assert service.stop().code == 0

    both = settings | {"MASTER_KEY": f"{NEW},{OLD}"}
    with ServiceProcess(both) as service, Load(api_user) as load:
        left = [before]
        for _ in range(KILLS):
            killed_in_the_middle(both)
            left.append(stored_under(both)[old_key])
        assert left == sorted(set(left), reverse=True), "each time some were sealed again"
        assert left[-1] > 0
        ready = httpx2.get(f"{api_user.base_url}/readyz").json()
        assert ready["status"] == "ready"
        assert run(both, "rekey").returncode == 0
        assert old_key not in stored_under(both)
    assert load.finished

    with ServiceProcess(settings | {"MASTER_KEY": NEW}) as service:
        last = api_user.finish_a_project()
        expected = (len(load.finished) + 1) * ENDPOINTS
        receiver.wait_until(lambda it: len(it.seen()) >= expected, "every delivery")
        headers = {"authorization": f"Bearer {api_user.keys.api}"}
        with httpx2.Client(base_url=api_user.base_url, headers=headers, timeout=60) as client:
            assert create_once(client, ANSWERS - 1).text == answer
        assert service.stop().code == 0
    assert any(last in received.body.decode() for received in receiver.seen())
    for received in receiver.seen():
        seen = Seen(received.at, received.path, received.headers, received.body)
        assert signature_fits(seen, [secrets[received.path]])


def test_a_key_that_is_taken_away_too_early_is_found_at_the_start(
    settings: dict[str, str], receiver: RecordingReceiver
) -> None:
    made = json.loads(run(settings, "setup", "--json").stdout)
    api_user = ApiUser(
        f"http://127.0.0.1:{settings['PORT']}", Keys(made["apiKey"], made["serviceKey"])
    )
    for key in (OLD, f"{NEW},{OLD}"):
        with ServiceProcess(settings | {"MASTER_KEY": key}):
            api_user.post("/v1/webhooks", {"url": receiver.url("/hook")})
    with ServiceProcess(settings | {"MASTER_KEY": f"{NEW},{OLD}"}):
        counts = httpx2.get(f"{api_user.base_url}/readyz").json()["secretsUnderKey"]
        assert sorted(counts.values()) == [1, 1]
    early = settings | {"MASTER_KEY": NEW}
    with ServiceProcess(early) as service:
        ready = httpx2.get(f"{api_user.base_url}/readyz")
        assert ready.status_code == 503
        assert ready.json()["checks"]["secrets"] == "1 are encrypted with a missing master key"
        assert "event=master_key_missing secrets=1" in service.said
    found = run(early, "doctor")
    assert found.returncode == 1
    assert "are encrypted with a missing master key" in found.stdout
    assert run(settings | {"MASTER_KEY": f"{NEW},{OLD}"}, "rekey").returncode == 0
    with ServiceProcess(early):
        assert httpx2.get(f"{api_user.base_url}/readyz").status_code == 200
