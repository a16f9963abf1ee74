"""What tests of the inbox share: a clock, a handler that tells, and numbered deliveries."""

import queue
import threading
import time
from collections.abc import Callable
from typing import Any

from cuepost_receiver import Answer, Event, Inbox, SqliteStore
from cuepost_receiver.stores.protocol import Claim
from packages.receiver.tests.signing import NOW, SECRET, Delivery, event_body

PATIENCE = 30.0

ACCEPTED = Answer(200, {"status": "accepted"})

DUPLICATE = Answer(200, {"status": "duplicate"})


class Clock:
    def __init__(self) -> None:
        self.now = float(NOW)

    def __call__(self) -> float:
        return self.now


class Seen:
    """A handler that tells what it got."""

    def __init__(self, answer: Callable[[Event], Any] = lambda event: None) -> None:
        self._events: queue.Queue[Event] = queue.Queue()
        self._answer = answer

    def __call__(self, event: Event) -> Any:
        self._events.put(event)
        return self._answer(event)

    def next(self) -> Event:
        return self._events.get(timeout=PATIENCE)

    @property
    def count(self) -> int:
        return self._events.qsize()


def numbered(number: int, kind: str = "project.completed") -> Delivery:
    event_id = f"0198c0de-7b2c-7f00-8a1b-{number:012d}"
    return Delivery(body=event_body(event_id, kind), event_id=event_id)


def opened(store: SqliteStore, handler: Callable[[Event], Any], **more: Any) -> Inbox:
    return Inbox(store, SECRET, handler, **{"clock": Clock(), "poll_seconds": 0.02, **more})


def receive(inbox: Inbox, delivery: Delivery) -> Answer:
    return inbox.receive(delivery.body, delivery.headers)


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < deadline, what
        pause.wait(0.01)


def one_claim(store: SqliteStore) -> Claim:
    claim = store.claim(NOW + 1e6, NOW + 2e6)
    assert claim is not None
    return claim
