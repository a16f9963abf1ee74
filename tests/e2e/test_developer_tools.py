"""`cuepost trigger` and `cuepost deliveries` against a real service and a real receiver."""

import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.first_steps import ApiUser, Keys, keys_in
from tests.interfaces.cli.judging_receiver import judging_receiver
from tests.support.service_process import (
    PATIENCE_SECONDS,
    ServiceProcess,
    environment,
    free_port,
    run_in,
    start,
)


@dataclass
class Workstation:
    """A developer's terminal, with a service and a receiver that answers as told."""

    url: str
    keys: Keys
    api_user: ApiUser
    receiver: str
    answer: list[int]

    @property
    def environ(self) -> dict[str, str]:
        return environment(
            {"URL": self.url, "API_KEY": self.keys.api, "SERVICE_KEY": self.keys.service}
        )

    def run(self, *arguments: str, **more: str) -> "subprocess.CompletedProcess[str]":
        environ = {name: value for name, value in (self.environ | more).items() if value}
        return run_in(environ, *arguments)

    def json(self, *arguments: str, code: int = 0) -> Any:
        ran = self.run(*arguments, "--json")
        assert (ran.returncode, ran.stderr) == (code, "")
        return json.loads(ran.stdout)

    def endpoint(self, *events: str) -> str:
        body = {"url": self.receiver, "events": list(events)}
        made: str = self.api_user.post("/v1/webhooks", body)["id"]
        return made


@pytest.fixture
def workstation(tmp_path: Path) -> Iterator[Workstation]:
    answer = [204]
    with judging_receiver(lambda body, headers: answer[0]) as port:
        settings = {
            "DATA_DIR": str(tmp_path / "data"),
            "PORT": str(free_port()),
            "RECEIVER_HTTP": "true",
            "RECEIVER_NETWORKS": "127.0.0.0/8",
            "RECEIVER_PORTS": str(port),
            # Of the developer's tools; a service leaves them alone.
            "API_KEY": "someone's",
            "URL": "https://elsewhere.example.com",
        }
        with ServiceProcess(settings) as service:
            keys = keys_in(service.greeting)
            assert keys is not None
            url = f"http://127.0.0.1:{settings['PORT']}"
            hook = f"http://127.0.0.1:{port}/hook"
            yield Workstation(url, keys, ApiUser(url, keys), hook, answer)


@pytest.mark.parametrize(
    "event_type", ["project.completed", "project.failed", "project.ready", "project.cancelled"]
)
def test_every_type_can_be_triggered_for_real(workstation: Workstation, event_type: str) -> None:
    webhook = workstation.endpoint(event_type)
    made = workstation.json("trigger", event_type)
    [delivery] = made["deliveries"]
    assert (delivery["webhookId"], delivery["status"]) == (webhook, "delivered")
    assert workstation.api_user.get(f"/v1/events/{made['eventId']}")["type"] == event_type


def test_a_test_event_finds_the_only_endpoint(workstation: Workstation) -> None:
    assert workstation.run("trigger", "webhook.test").returncode == 2
    webhook = workstation.endpoint()
    assert workstation.json("trigger", "webhook.test")["deliveries"][0]["status"] == "delivered"
    workstation.endpoint("project.ready")
    refused = workstation.run("trigger", "webhook.test")
    assert refused.stderr == (
        "Error: Choose the endpoint with --webhook ID; the account does not have exactly one.\n"
    )
    shown = workstation.run("trigger", "webhook.test", "--webhook", webhook)
    assert shown.stdout.splitlines()[2].split() == ["ENDPOINT", "STATUS", "RESULT", "DELIVERY"]
    assert webhook in shown.stdout


def test_a_receiver_that_fails_is_shown_and_retried(workstation: Workstation) -> None:
    workstation.endpoint("project.completed")
    workstation.answer[0] = 500
    made = workstation.json("trigger", "project.completed", code=1)
    [delivery] = made["deliveries"]
    assert (delivery["status"], delivery["lastAttempt"]["responseStatus"]) == ("retrying", 500)
    refused = workstation.run("deliveries", "retry", delivery["id"])
    assert (refused.returncode, refused.stdout) == (1, "")
    assert workstation.json("deliveries", "tail", "--no-follow")["status"] == "retrying"


def test_no_endpoint_subscribes(workstation: Workstation) -> None:
    shown = workstation.run("trigger", "project.completed")
    assert (shown.returncode, shown.stderr) == (1, "")
    assert "no endpoint subscribes" in shown.stdout


def test_one_delivery_and_many_are_sent_again(workstation: Workstation) -> None:
    webhook = workstation.endpoint("project.completed")
    first = workstation.json("trigger", "project.completed")["deliveries"][0]
    again = workstation.run("deliveries", "retry", first["id"])
    assert again.stdout == (
        f"Delivery {first['id']} of event {first['eventId']} will be retried.\n"
    )
    workstation.json("trigger", "project.completed")
    chosen = ("--webhook", webhook, "--since", "2020-01-01T00:00:00Z", "--status", "delivered")
    counted = workstation.json("deliveries", "retry", *chosen, "--dry-run")
    assert (counted["dryRun"], counted["count"], counted["includeDelivered"]) == (True, 2, False)
    counted = workstation.json("deliveries", "retry", *chosen, "--dry-run", "--include-delivered")
    assert counted["includeDelivered"] is True
    assert (
        workstation.run("deliveries", "retry", *chosen).stdout == "2 deliveries will be retried.\n"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("deliveries", "retry"),
        ("deliveries", "retry", "--since", "2020-01-01T00:00:00Z"),
        ("deliveries", "retry", "no id"),
        ("trigger", "project.unknown"),
    ],
    ids=" ".join,
)
def test_what_is_typed_wrongly_is_a_usage_error(
    workstation: Workstation, arguments: tuple[str, ...]
) -> None:
    assert workstation.run(*arguments).returncode == 2


def test_what_cannot_be_done_is_said_in_one_line(workstation: Workstation, tmp_path: Path) -> None:
    unknown = "0198c0de-9c4e-7d21-8a1b-3f6a5b7c8d90"
    unreachable = f"http://127.0.0.1:{free_port()}"
    key_file = tmp_path / "key"
    key_file.write_text(workstation.keys.api + "\n")
    reported = [
        workstation.run("deliveries", "retry", unknown),
        workstation.run("deliveries", "retry", unknown, "--webhook", unknown),
        workstation.run("deliveries", "tail", CUEPOST_API_KEY="cpk_wrong"),
        workstation.run("deliveries", "tail", CUEPOST_API_KEY=""),
        workstation.run("deliveries", "tail", CUEPOST_URL=unreachable),
        workstation.run("deliveries", "tail", CUEPOST_URL="nowhere"),
        workstation.run("trigger", "project.ready", CUEPOST_SERVICE_KEY=""),
        workstation.run("trigger", "project.ready", CUEPOST_SERVICE_KEY=workstation.keys.api),
    ]
    assert [each.returncode for each in reported] == [1, 1, 1, 2, 1, 2, 2, 1]
    assert [each.stderr.count("\n") for each in reported] == [1] * len(reported)
    assert all(workstation.keys.api not in each.stderr for each in reported)
    by_file = ("deliveries", "tail", "--no-follow", "--api-key-file", str(key_file))
    assert workstation.run(*by_file, CUEPOST_API_KEY="").returncode == 0


def lines_of(process: "subprocess.Popen[bytes]") -> Iterator[Any]:
    """Each within the limit."""
    assert process.stdout is not None
    text, deadline = b"", time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        ready, _, _ = select.select([process.stdout], [], [], 1)
        if ready:
            text += os.read(process.stdout.fileno(), 65_536)
        *whole, text = text.split(b"\n")
        yield from map(json.loads, whole)
    raise AssertionError("nothing more was said")


def test_tail_shows_each_change_until_it_is_interrupted(workstation: Workstation) -> None:
    workstation.endpoint("project.completed")
    known = workstation.json("trigger", "project.completed")["deliveries"][0]
    reported = ("deliveries", "tail", "--json", "--interval", "0.1")
    with start(workstation.environ, *reported) as process:
        lines = lines_of(process)
        assert next(lines)["id"] == known["id"]
        workstation.answer[0] = 503
        new = workstation.json("trigger", "project.completed", code=1)["deliveries"][0]
        seen = next(each for each in lines if each["status"] == "retrying")
        assert (seen["id"], seen["attemptCount"]) == (new["id"], 1)
        workstation.answer[0] = 200
        home = f"/v1/webhooks/{known['webhookId']}/deliveries/{known['id']}/retry"
        workstation.api_user.post(home, None, status=202)
        again = next(each for each in lines if each["id"] == known["id"])
        assert again["budget"] == known["budget"] + 1
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_SECONDS) == 0


def test_tail_is_a_table_for_people(workstation: Workstation) -> None:
    workstation.endpoint("project.completed")
    made = workstation.json("trigger", "project.completed")["deliveries"][0]
    shown = workstation.run("deliveries", "tail", "--no-follow", "--webhook", made["webhookId"])
    [line] = shown.stdout.splitlines()
    assert line.split()[1:4] == ["delivered", "project.completed", made["id"]]
    assert "\x1b" not in line
    failed = ("deliveries", "tail", "--no-follow", "--status", "failed")
    for more in ((), ("--include-delivered",)):
        shown = workstation.run(*failed, *more)
        assert (shown.returncode, shown.stdout) == (0, "")
