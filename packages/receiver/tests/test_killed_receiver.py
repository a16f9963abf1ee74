"""kill -9 between any two steps, with duplicates, reordering and forgeries: nothing is lost."""

import http.client
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from packages.receiver.tests.killable_receiver import SECRET, STEPS
from packages.receiver.tests.signing import OTHER_SECRET, Delivery, event_body
from tests.support.postgres import fresh_database_sync

PATIENCE = 30.0
NEW_EVENTS_EACH_ROUND = 4
pytestmark = pytest.mark.timeout(3_600)


@pytest.fixture
def kills() -> int:
    """Ten in the ordinary run; `CUEPOST_TEST_RECEIVER_KILLS=1000` is the long form."""
    return int(os.environ.get("CUEPOST_TEST_RECEIVER_KILLS", "10"))


@dataclass
class Sender:
    """Sends as the service does, and remembers what was acknowledged."""

    chance: random.Random
    signed: list[str] = field(default_factory=list)
    forged: list[str] = field(default_factory=list)
    accepted: set[str] = field(default_factory=set)
    wrongly_answered: list[tuple[str, int]] = field(default_factory=list)

    def round(self, port: int) -> None:
        """New events, some that came before, and forgeries, in any order."""
        fresh = [self._new_id() for _ in range(NEW_EVENTS_EACH_ROUND)]
        self.signed += fresh
        again = self.chance.sample(self.signed, min(len(self.signed), 6))
        unanswered = [each for each in self.signed if each not in self.accepted]
        bad = [self._new_id() for _ in range(2)]
        self.forged += bad
        batch = [*fresh, *fresh, *again, *unanswered, *bad]
        self.chance.shuffle(batch)
        for event_id in batch:
            self.send(port, event_id)

    def send(self, port: int, event_id: str) -> None:
        genuine = event_id not in self.forged
        status = _post(port, event_id, SECRET if genuine else OTHER_SECRET)
        if status is None:
            return
        if status != (200 if genuine else 400):
            self.wrongly_answered.append((event_id, status))
        if status == 200:
            self.accepted.add(event_id)

    def _new_id(self) -> str:
        return f"event-{len(self.signed)}-{self.chance.getrandbits(48):012x}"


def _post(port: int, event_id: str, secret: str) -> int | None:
    """The status, or None when the receiver died over it."""
    delivery = Delivery(event_body(event_id), event_id, int(time.time()), [secret])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("POST", "/hook", delivery.body, delivery.headers)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


@contextmanager
def receiver(
    store: str, journal: Path, step: str = "never", number: int = 0
) -> Iterator[tuple["subprocess.Popen[str]", int]]:
    script = Path(__file__).with_name("killable_receiver.py")
    process = subprocess.Popen(
        [sys.executable, str(script), store, str(journal), step, str(number)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        # It may have died over what an earlier one had left behind.
        yield process, int(line) if line else 0
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE)


def kill_in_rounds(store: str, journal: Path, kills: int) -> None:
    sender = Sender(random.Random(kills))
    struck = 0
    for number in range(kills):
        step = STEPS[number % len(STEPS)]
        with receiver(store, journal, step, sender.chance.randint(1, 3)) as (process, port):
            if port:
                sender.round(port)
            struck += process.wait(PATIENCE) == -9
    with receiver(store, journal) as (process, port):
        for event_id in sender.chance.sample(sender.signed, len(sender.signed)):
            sender.send(port, event_id)
        _wait_for_effects(journal, sender.accepted)
        for event_id in sender.signed:
            sender.send(port, event_id)
        assert process.poll() is None

    lines = [line.split() for line in journal.read_text().splitlines()]
    assert struck == kills
    assert sender.wrongly_answered == []
    assert sender.accepted == set(sender.signed)
    assert {event_id for _, event_id in lines} == set(sender.signed)
    assert _begun_after_the_end(lines) == []


def _wait_for_effects(journal: Path, expected: set[str]) -> None:
    deadline = time.monotonic() + PATIENCE
    pause = threading.Event()
    while missing := expected - _with("effect", journal):
        assert time.monotonic() < deadline, missing
        pause.wait(0.05)


def _with(word: str, journal: Path) -> set[str]:
    lines = (line.split() for line in journal.read_text().splitlines())
    return {event_id for first, event_id in lines if first == word}


def _begun_after_the_end(lines: list[list[str]]) -> list[str]:
    ended: set[str] = set()
    wrong = []
    for word, event_id in lines:
        if word == "finished":
            ended.add(event_id)
        elif word == "begin" and event_id in ended:
            wrong.append(event_id)
    return wrong


def test_nothing_is_lost_on_sqlite(tmp_path: Path, kills: int) -> None:
    kill_in_rounds(str(tmp_path / "inbox.sqlite3"), tmp_path / "journal", kills)


def test_nothing_is_lost_on_postgres(postgres_url: str, tmp_path: Path, kills: int) -> None:
    with fresh_database_sync(postgres_url) as url:
        kill_in_rounds(url, tmp_path / "journal", kills)
