"""`cuepost demo` tells its story on any machine, by itself, and says when a step does not hold."""

import json
import os
import pty
import re
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from cuepost.interfaces.cli import cli
from cuepost.interfaces.cli.demo import STEPS
from cuepost.interfaces.cli.demo_receiver import Arrival, Receiver
from tests.support.service_process import PATIENCE_SECONDS, command, environment

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
ARRIVAL = Arrival(
    {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    },
    b'{"test": 2432232314}',
    204,
    0.0,
)


def demo(folder: Path, **more: str) -> "subprocess.Popen[str]":
    environ = environment(more) | {"TMPDIR": str(folder)}
    return subprocess.Popen(
        command("demo"), env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_every_step_holds_and_nothing_stays_behind(tmp_path: Path) -> None:
    process = demo(tmp_path, PORT="a setting of someone's own service")
    reported, complaints = process.communicate(timeout=PATIENCE_SECONDS)

    assert (process.returncode, complaints) == (0, "")
    assert re.findall(r"^(\d)/\d  ", reported, re.MULTILINE) == [str(n + 1) for n in range(STEPS)]
    assert re.search(r"^Every step succeeded \(\d+ s\)\.$", reported, re.MULTILINE)
    assert "\x1b" not in reported
    assert [line.split()[1] for line in reported.splitlines() if line.startswith("     →")] == [
        "webhook.test",
        "project.ready",
        "project.completed",
        "project.failed",
        "project.failed",
        "project.failed",
        "webhook.test",
        "webhook.test",
        "project.completed",
    ]
    assert "two signatures, both valid" in reported
    assert list(tmp_path.iterdir()) == []


def test_it_has_colours_on_a_terminal(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    environ = environment({}) | {"TMPDIR": str(tmp_path), "TERM": "xterm"}
    process = subprocess.Popen(command("demo"), env=environ, stdout=theirs, stderr=theirs)
    os.close(theirs)
    first = os.read(ours, 65_536)
    process.send_signal(signal.SIGTERM)
    code = process.wait(PATIENCE_SECONDS)
    os.close(ours)

    assert first.startswith(b"\x1b[1mcuepost ")
    assert code == 1
    assert list(tmp_path.iterdir()) == []


def test_a_step_that_does_not_hold_is_named_and_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    take = Receiver.take

    def forged(self: Receiver, headers: dict[str, str], body: bytes) -> int:
        if json.loads(body)["type"] == "project.ready":
            headers = headers | {"webhook-timestamp": "1"}
        return take(self, headers, body)

    monkeypatch.setattr(Receiver, "take", forged)

    result = CliRunner().invoke(cli, ["demo"])

    assert result.exit_code == 1
    assert "\n3/9  A project reaches its milestones\n" in result.stdout
    assert "✗ project.ready arrived without valid signatures" in result.stdout
    assert result.stdout.endswith("\nThe demo failed at this step.\n")
    assert "4/9" not in result.stdout


def test_its_receiver_knows_a_signature_of_the_convention_from_any_other() -> None:
    other = SECRET.replace("M", "N")
    forged = replace(ARRIVAL, body=b'{"test": 2432232315}')

    assert ARRIVAL.is_signed_with(SECRET)
    assert not ARRIVAL.is_signed_with(SECRET, other)
    assert not ARRIVAL.is_signed_with(other)
    assert not forged.is_signed_with(SECRET)
