"""The service as a stranger meets it: real processes, real sockets, both stores."""

import json
import re
import signal
import socket
import subprocess
import time
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.e2e.first_steps import WELL, ApiUser, health, keys_in, request
from tests.support.postgres import fresh_database_sync
from tests.support.recording_receiver import RecordingReceiver
from tests.support.service_process import (
    PATIENCE_SECONDS,
    Ended,
    ServiceProcess,
    free_port,
    run,
)

HOOK = "/cuepost"
LONELY_KEY = "give all of them the same CUEPOST_MASTER_KEY\n"


@pytest.fixture
def receiver() -> Iterator[RecordingReceiver]:
    with RecordingReceiver() as receiver:
        yield receiver


@pytest.fixture
def settings(tmp_path: Path, receiver: RecordingReceiver) -> dict[str, str]:
    """An empty data folder, a port that is free now, and a receiver that may be called."""
    return {
        "DATA_DIR": str(tmp_path / "data"),
        "PORT": str(free_port()),
        "RECEIVER_HTTP": "true",
        "RECEIVER_NETWORKS": "127.0.0.0/8",
        "RECEIVER_PORTS": f"443,{receiver.port}",
    }


@pytest.fixture
def postgres_settings(settings: dict[str, str], postgres_url: str) -> Iterator[dict[str, str]]:
    key = b64encode(bytes(32)).decode()
    with fresh_database_sync(postgres_url) as url:
        yield settings | {"DATABASE_URL": url, "MASTER_KEY": key}


def base_url(settings: dict[str, str]) -> str:
    return f"http://127.0.0.1:{settings['PORT']}"


def api_user_of(service: ServiceProcess, settings: dict[str, str]) -> ApiUser:
    keys = keys_in(service.greeting)
    assert keys is not None
    return ApiUser(base_url(settings), keys)


def walk_through(api_user: ApiUser, receiver: RecordingReceiver) -> None:
    """Endpoint, project, milestones, and a delivery."""
    endpoint = api_user.post("/v1/webhooks", {"url": receiver.url(HOOK)})
    project_id = api_user.finish_a_project()

    delivery = ended_delivery(api_user)
    assert delivery | {"eventType": "project.completed", "status": "delivered"} == delivery
    assert [each.event_id for each in receiver.seen()] == [delivery["eventId"]]
    assert (delivery["webhookId"], delivery["projectId"]) == (endpoint["id"], project_id)
    shown = api_user.get(f"/v1/webhooks/{endpoint['id']}/deliveries/{delivery['id']}")
    assert shown["event"]["data"] == {
        "projectId": project_id,
        "status": "completed",
        "stage": "export",
        "resultUrl": f"{api_user.base_url}/v1/projects/{project_id}/result",
    }


def ended_delivery(api_user: ApiUser) -> Any:
    """The only one there is, once nothing is to be done for it any more."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        [delivery] = api_user.get("/v1/deliveries")["data"]
        if delivery["status"] not in {"pending", "delivering"}:
            return delivery
        assert time.monotonic() < deadline


def everything(api_user: ApiUser) -> list[object]:
    paths = ("/v1/webhooks", "/v1/projects", "/v1/events", "/v1/deliveries")
    return [api_user.get(path) for path in paths]


def test_the_first_start_hands_over_keys_and_a_restart_keeps_everything(
    settings: dict[str, str], receiver: RecordingReceiver
) -> None:
    with ServiceProcess(settings, fresh=True) as first:
        assert health(base_url(settings)) == WELL
        api_user = api_user_of(first, settings)
        walk_through(api_user, receiver)
        before = everything(api_user)
        assert first.stop() == Ended(0, "")
    with ServiceProcess(settings, fresh=True) as second:
        assert keys_in(second.greeting) is None
        assert "cpk_" not in second.greeting
        assert everything(api_user) == before
        assert second.stop() == Ended(0, "")


def test_the_greeting_names_the_addresses(settings: dict[str, str]) -> None:
    with ServiceProcess(settings) as service:
        assert f"  Pages  {base_url(settings)}/settings\n" in service.greeting
        assert f"  API    {base_url(settings)}\n" in service.greeting
        assert f"  Docs   {base_url(settings)}/docs\n" in service.greeting
        docs = httpx2.get(f"{base_url(settings)}/docs", trust_env=False, timeout=PATIENCE_SECONDS)
        assert docs.status_code == 200


def test_the_first_webhook_of_the_greeting_arrives_in_the_test_inbox(
    settings: dict[str, str],
) -> None:
    with ServiceProcess(settings) as service:
        api_user = api_user_of(service, settings)
        [inbox] = re.findall(r"  Test inbox +(\S+)\n", service.greeting)
        [command] = re.findall(r"^curl .*?'\n\n", service.greeting, re.DOTALL | re.MULTILINE)

        created = json.loads(
            subprocess.run(
                ["bash", "-c", command],
                capture_output=True,
                check=True,
                timeout=PATIENCE_SECONDS,
            ).stdout
        )
        assert created["url"] == inbox
        api_user.post(f"/v1/webhooks/{created['id']}/test", {}, status=202)
        assert ended_delivery(api_user)["status"] == "delivered"


def test_answers_do_not_say_which_server_gives_them(settings: dict[str, str]) -> None:
    with ServiceProcess(settings):
        headers = httpx2.get(
            f"{base_url(settings)}/healthz", trust_env=False, timeout=PATIENCE_SECONDS
        ).headers

    assert "server" not in headers
    assert "date" in headers


def test_after_a_kill_all_that_was_acknowledged_is_there(
    settings: dict[str, str], receiver: RecordingReceiver
) -> None:
    with ServiceProcess(settings) as first:
        api_user = api_user_of(first, settings)
        walk_through(api_user, receiver)
        before = everything(api_user)
        first.kill()
    with ServiceProcess(settings) as second:
        assert health(base_url(settings)) == WELL
        assert everything(api_user) == before
        assert second.stop() == Ended(0, "")


def test_ctrl_c_ends_it_in_order_although_a_client_keeps_its_connection(
    settings: dict[str, str],
) -> None:
    with (
        ServiceProcess(settings) as service,
        httpx2.Client(trust_env=False, timeout=PATIENCE_SECONDS) as client,
    ):
        assert client.get(f"{base_url(settings)}/healthz").status_code == 200
        service.send_signal(signal.SIGINT)
        assert service.wait() == Ended(0, "")


def test_a_port_that_is_taken_is_said_in_one_line(settings: dict[str, str]) -> None:
    with socket.create_server(("127.0.0.1", int(settings["PORT"]))):
        ended = run(settings, "serve")

    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == (
        f"Error: Port {settings['PORT']} on 127.0.0.1 is already in use; "
        "stop what uses it, or set CUEPOST_PORT.\n"
    )
    assert not Path(settings["DATA_DIR"]).exists()


def test_a_bulk_retry_is_done_by_the_running_service(
    settings: dict[str, str], receiver: RecordingReceiver
) -> None:
    with ServiceProcess(settings) as service:
        api_user = api_user_of(service, settings)
        endpoint = api_user.post("/v1/webhooks", {"url": receiver.url(HOOK)})
        address = f"/v1/webhooks/{endpoint['id']}"
        api_user.patch(address, {"enabled": False})
        api_user.finish_a_project()
        api_user.patch(address, {"enabled": True})
        [cancelled] = api_user.get("/v1/deliveries")["data"]
        assert (cancelled["status"], cancelled["reason"]) == ("cancelled", "endpoint_disabled")

        since = {"since": endpoint["createdAt"]}
        job = api_user.post(f"{address}/retries", since, status=202)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while api_user.get(f"{address}/retries/{job['id']}")["status"] == "running":
            assert time.monotonic() < deadline

        again = ended_delivery(api_user)
        assert (again["status"], again["budget"]) == ("delivered", 2)


def test_a_key_that_an_operator_revokes_is_soon_refused(settings: dict[str, str]) -> None:
    with ServiceProcess(settings) as service:
        api_user = api_user_of(service, settings)
        api_user.get("/v1/projects")
        assert run(settings, "keys", "revoke", api_user.keys.api).returncode == 0

        deadline = time.monotonic() + PATIENCE_SECONDS
        while request(api_user.base_url, api_user.keys.api, "GET", "/v1/projects").is_success:
            assert time.monotonic() < deadline
        refused = request(api_user.base_url, api_user.keys.api, "GET", "/v1/projects")
        assert (refused.status_code, refused.json()["code"]) == (401, "unauthenticated")


def test_another_master_key_is_found_at_the_start(
    settings: dict[str, str], receiver: RecordingReceiver
) -> None:
    old, new = (b64encode(bytes([number]) * 32).decode() for number in (1, 2))
    with ServiceProcess(settings | {"MASTER_KEY": old}) as service:
        api_user = api_user_of(service, settings)
        api_user.post("/v1/webhooks", {"url": receiver.url(HOOK)})
        service.stop()

    ended = run(settings | {"MASTER_KEY": new}, "serve")
    assert (ended.returncode, ended.stderr) == (
        1,
        "Error: None of the master keys opens this value; was CUEPOST_MASTER_KEY changed?\n",
    )
    with ServiceProcess(settings | {"MASTER_KEY": f"{new},{old}"}):
        assert len(api_user.get("/v1/webhooks")["data"]) == 1


def test_postgres_is_served_once_it_was_migrated(
    postgres_settings: dict[str, str], receiver: RecordingReceiver
) -> None:
    ended = run(postgres_settings, "api")
    assert (ended.returncode, ended.stderr) == (
        1,
        "Error: The database has no cuepost schema yet; run 'cuepost migrate'.\n",
    )
    assert run(postgres_settings, "migrate").returncode == 0

    with ServiceProcess(postgres_settings, "api", fresh=True) as api:
        assert health(base_url(postgres_settings)) == WELL
        assert keys_in(api.greeting) is None
        assert api.stop() == Ended(0, "")
    with ServiceProcess(postgres_settings) as whole:
        api_user = api_user_of(whole, postgres_settings)
        walk_through(api_user, receiver)
        before = everything(api_user)
        whole.kill()
    with ServiceProcess(postgres_settings, "api") as api:
        assert everything(api_user) == before
        assert api.stop() == Ended(0, "")


def test_on_postgres_a_key_file_of_one_machine_is_warned_of(
    postgres_settings: dict[str, str],
) -> None:
    del postgres_settings["MASTER_KEY"]
    assert run(postgres_settings, "setup").returncode == 0

    with ServiceProcess(postgres_settings) as service:
        ended = service.stop()

    assert ended.code == 0
    assert ended.stderr.count("\n") == 1
    assert ended.stderr.endswith(LONELY_KEY)


def test_the_last_request_before_a_stop_is_in_the_log(settings: dict[str, str]) -> None:
    with ServiceProcess(settings | {"LOG_LEVEL": "info"}) as service:
        api_user_of(service, settings)
        httpx2.get(f"{base_url(settings)}/v1/projects", trust_env=False)
        ended = service.stop()
    assert ended.code == 0
    [line] = [each for each in ended.stderr.splitlines() if "operation=listProjects" in each]
    assert " INFO cuepost.rest: event=request operation=listProjects method=GET status=401 " in line


def test_it_says_what_it_is_doing_when_it_is_asked_by_a_signal(settings: dict[str, str]) -> None:
    with ServiceProcess(settings) as service:
        service.send_signal(signal.SIGUSR2)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while "event=tasks" not in service.said and time.monotonic() < deadline:
            assert health(base_url(settings)) == WELL
        ended = service.stop()
    state, *tasks = ended.stderr.splitlines()
    assert state.startswith('event=engine_state stalled="no" worker=')
    assert "running=True stopping=False" in state
    assert any("dispatcher.py" in task and "Dispatcher.run" in task for task in tasks)
    assert ended.code == 0
