"""`cuepost listen` as a developer meets it: what it shows, what it refuses, how it ends."""

import os
import pty
import re
import select
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from cuepost.domain.signing import SigningSecret
from cuepost.interfaces.cli.forwarding import Forwarder
from cuepost.interfaces.cli.listen_output import Display
from cuepost.interfaces.cli.listening import ListenLoop
from cuepost.interfaces.cli.service_client import ServiceClient
from cuepost_receiver import verify
from tests.e2e.first_steps import ApiUser, keys_in
from tests.interfaces.cli.judging_receiver import judging_receiver
from tests.support.listen_process import ListenProcess
from tests.support.service_process import (
    PATIENCE_SECONDS,
    ServiceProcess,
    command,
    environment,
    free_port,
    run_in,
)


@dataclass
class Workstation:
    """A service, and a receiver that answers as told and keeps what it gets."""

    api_user: ApiUser
    folder: Path
    receiver: str
    answers: list[int]
    got: list[tuple[bytes, dict[str, str]]]

    @property
    def listener(self) -> ListenProcess:
        keys = self.api_user.keys
        return ListenProcess(self.api_user.base_url, keys.api, self.receiver, self.folder)

    def environ(self) -> dict[str, str]:
        settings = {"URL": self.api_user.base_url, "API_KEY": self.api_user.keys.api}
        return environment(settings) | {"XDG_STATE_HOME": str(self.folder / "state")}

    def cancelled(self) -> str:
        """An event that needs no pipeline; its id."""
        project = self.api_user.post("/v1/projects", {"name": "Cut"})["id"]
        self.api_user.post(f"/v1/projects/{project}/cancel", None, 200)
        [event] = self.api_user.get(f"/v1/events?projectId={project}")["data"]
        return str(event["id"])


@pytest.fixture
def workstation(tmp_path: Path) -> Iterator[Workstation]:
    answers: list[int] = []
    got: list[tuple[bytes, dict[str, str]]] = []

    def judge(body: bytes, headers: Mapping[str, str]) -> int:
        got.append((body, dict(headers)))
        return answers.pop(0) if answers else 204

    with judging_receiver(judge) as port:
        settings = {"DATA_DIR": str(tmp_path / "data"), "PORT": str(free_port())}
        with ServiceProcess(settings) as service:
            keys = keys_in(service.greeting)
            assert keys is not None
            api_user = ApiUser(f"http://127.0.0.1:{settings['PORT']}", keys)
            yield Workstation(api_user, tmp_path, f"http://127.0.0.1:{port}/hook", answers, got)
            # Someone may be waiting for events: a stop does not wait for them.
            began = time.monotonic()
            assert service.stop().code == 0
            assert time.monotonic() - began < 8


@contextmanager
def listening(workstation: Workstation) -> Iterator[ListenProcess]:
    listener = workstation.listener
    listener.start()
    try:
        listener.wait_until(lambda: bool(listener.lines("listening")))
        yield listener
    finally:
        if listener.is_running:
            listener.end(signal.SIGKILL)


def test_what_the_receiver_answers_badly_is_tried_three_times_and_passed_over(
    workstation: Workstation,
) -> None:
    workstation.answers += [500, 404, 503, 200]
    with listening(workstation) as listener:
        bad, good = workstation.cancelled(), workstation.cancelled()
        listener.wait_until(lambda: len(listener.lines("forwarded")) == 4)
        assert listener.end(signal.SIGINT) == 0
    reported = [
        (each["eventId"], each["status"], each["givenUp"]) for each in listener.lines("forwarded")
    ]
    assert reported == [(bad, 500, False), (bad, 404, False), (bad, 503, True), (good, 200, False)]
    assert [each["forwarded"] for each in listener.lines("ended")] == [1]
    [secret] = {each["secret"] for each in listener.lines("listening")}
    assert [verify(body, headers, [secret]).id for body, headers in workstation.got] == [
        bad
    ] * 3 + [good]


def test_what_was_shown_as_forwarded_counts_though_it_is_ended_at_that_moment(
    workstation: Workstation,
) -> None:
    def interrupted() -> datetime:
        raise KeyboardInterrupt

    client = ServiceClient(urlsplit(workstation.api_user.base_url), workstation.api_user.keys.api)
    secret = SigningSecret(os.urandom(32))
    forwarder = Forwarder(urlsplit(workstation.receiver), secret, lambda: datetime.now(UTC))
    work = ListenLoop(client, "workstation", (), forwarder, Display(as_json=True, now=interrupted))
    began_at = work.register()["acknowledged"]
    workstation.cancelled()
    with pytest.raises(KeyboardInterrupt):
        work.run()
    work.acknowledge_on_exit()
    assert (work.forwarded, len(workstation.got)) == (1, 1)
    assert work.register()["acknowledged"] > began_at, "it would come again"


def test_a_second_one_with_the_same_name_is_refused(workstation: Workstation) -> None:
    with listening(workstation):
        ran = run_in(workstation.environ(), "listen", workstation.receiver)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "Another 'cuepost listen' already uses" in ran.stderr


def test_a_wrong_key_ends_it_and_a_wrong_address_is_a_usage_error(workstation: Workstation) -> None:
    for target, key, code, said in (
        (workstation.receiver, "cpk_wrong", 1, "rejected the API key"),
        ("ftp://localhost/hook", workstation.api_user.keys.api, 2, "is not a URL such as"),
    ):
        ran = run_in(workstation.environ() | {"CUEPOST_API_KEY": key}, "listen", target)
        assert ran.returncode == code
        assert said in ran.stderr


def test_on_a_terminal_r_sends_the_last_one_again(workstation: Workstation) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command("listen", workstation.receiver),
        env=workstation.environ() | {"TERM": "xterm"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    try:
        shown = read_until(ours, "Ctrl-C stops")
        [secret] = re.findall(r"whsec_[A-Za-z0-9+/=]+", shown)
        event_id = workstation.cancelled()
        assert re.search(rf"204.* ms  project.cancelled  {event_id}", read_until(ours, event_id))
        os.write(ours, b"r")
        read_until(ours, "resent")
        process.send_signal(signal.SIGINT)
        assert "1 forwarded events" in read_until(ours, "resumes here")
        assert process.wait(PATIENCE_SECONDS) == 0
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(PATIENCE_SECONDS)
        os.close(ours)
    assert [verify(body, headers, [secret]).id for body, headers in workstation.got] == [
        event_id
    ] * 2


def read_until(terminal: int, wanted: str) -> str:
    text, deadline = "", time.monotonic() + PATIENCE_SECONDS
    while wanted not in text:
        ready, _, _ = select.select([terminal], [], [], max(deadline - time.monotonic(), 0))
        assert ready, f"{wanted!r} is not in {text!r}"
        text += os.read(terminal, 65_536).decode()
    return text
