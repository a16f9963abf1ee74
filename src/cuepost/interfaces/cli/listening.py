"""The work of `cuepost listen`: take from the stream, forward in its order, acknowledge.

What was acknowledged was answered by the receiver before. Whatever happens in between, on either
side, the stream begins again behind the last acknowledgement, so each event comes at least once.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from cuepost.interfaces.cli.forwarding import Forwarder, ForwardResult, Streamed
from cuepost.interfaces.cli.listen_output import Display
from cuepost.interfaces.cli.service_client import NotThere, ServiceClient, TryLater

T = TypeVar("T")

# Shorter than the client's own patience, so that a silent connection is noticed and given up.
WAIT_SECONDS = 20
EVENTS_AT_ONCE = 50
ACKNOWLEDGED_EVERY_SECONDS = 0.25
SERVICE_PAUSES = (0.5, 1.0, 2.0, 5.0)
# An event that the receiver answers badly is tried three times; one without receiver waits.
RETRY_PAUSES = (1.0, 3.0)
RECEIVER_PAUSES = (0.25, 0.5, 1.0, 2.0)


@dataclass(slots=True)
class Listening:
    client: ServiceClient
    registered_as: str
    events: Sequence[str]
    forwarder: Forwarder
    display: Display
    forwarded: int = 0
    _listener: str = ""
    _done: int = 0
    _acknowledged: int = 0
    _acknowledged_at: float = 0.0
    _pause: threading.Event = field(default_factory=threading.Event)

    def register(self) -> Any:
        """Waits until the service is there; what is wrong with the key or a name ends it."""
        body = {"name": self.registered_as, "events": list(self.events)}
        listener = self._patiently(lambda: self.client.post("/v1/listeners", body))
        self._listener = listener["id"]
        self._done = self._acknowledged = listener["acknowledged"]
        return listener

    def run(self) -> None:
        """Goes on until it is interrupted."""
        while True:
            try:
                self._patiently(self._acknowledge)
                found = self._patiently(self._next)
            except NotThere:
                # Deleted, or nobody was here for a month: what happened meanwhile is not to be had.
                self.display.forgotten()
                self.register()
                continue
            for event in found:
                if event["position"] > self._done:
                    self._forward(event)

    def again(self) -> None:
        """The last event once more; it does not count for the stream."""
        event = self.forwarder.last
        if event is not None:
            self.display.attempted(event, self.forwarder.send(event), again=True)

    def leave(self) -> None:
        """Say what is done, if the service can be reached; else it comes again."""
        try:
            self._acknowledge()
        except (TryLater, NotThere):
            return

    def _next(self) -> list[Streamed]:
        found: list[Streamed] = self.client.get(
            f"/v1/listeners/{self._listener}/events",
            wait=str(WAIT_SECONDS),
            limit=str(EVENTS_AT_ONCE),
        )["data"]
        return found

    def _forward(self, event: Streamed) -> None:
        attempt = self._delivered(event)
        self.forwarded += attempt.succeeded
        self._done = event["position"]
        # Shown last: whoever saw it and ends this is told that it was forwarded.
        self.display.attempted(event, attempt, given_up=not attempt.succeeded)
        if time.monotonic() - self._acknowledged_at >= ACKNOWLEDGED_EVERY_SECONDS:
            try:
                self._acknowledge()
            except TryLater:
                # The receiver has it: the rest need not wait until the service can be told.
                return

    def _delivered(self, event: Streamed) -> ForwardResult:
        """Until it is answered well, or was answered badly three times."""
        bad, absent = 0, 0
        while True:
            attempt = self.forwarder.send(event)
            if attempt.succeeded:
                return attempt
            if attempt.refused:
                if absent == 0:
                    self.display.receiver_absent(event, attempt)
                self._pause.wait(RECEIVER_PAUSES[min(absent, len(RECEIVER_PAUSES) - 1)])
                absent += 1
                continue
            absent = 0
            if bad == len(RETRY_PAUSES):
                return attempt
            self.display.attempted(event, attempt, next_in=RETRY_PAUSES[bad])
            self._pause.wait(RETRY_PAUSES[bad])
            bad += 1

    def _acknowledge(self) -> None:
        if self._done > self._acknowledged:
            done = self._done
            self.client.post(f"/v1/listeners/{self._listener}/acknowledge", {"upTo": done})
            self._acknowledged = done
            self._acknowledged_at = time.monotonic()

    def _patiently(self, call: Callable[[], T]) -> T:
        """Through restarts and lost connections; told once when it begins and once when it ends."""
        failed = 0
        while True:
            try:
                answer = call()
            except TryLater as error:
                if failed == 0:
                    self.display.service_absent(str(error))
                self._pause.wait(SERVICE_PAUSES[min(failed, len(SERVICE_PAUSES) - 1)])
                failed += 1
            else:
                if failed:
                    self.display.service_back()
                return answer
