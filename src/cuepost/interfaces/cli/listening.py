"""The loop of `cuepost listen`: read events from the stream, forward them in order, acknowledge.

An event is acknowledged only after the receiver has responded. After any failure the stream resumes
behind the last acknowledgement, so each event is forwarded at least once.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from cuepost.interfaces.cli.forwarding import Forwarder, ForwardResult, StreamedEvent
from cuepost.interfaces.cli.listen_output import Display
from cuepost.interfaces.cli.service_client import ServiceClient, ServiceUnavailable, UnknownResource

T = TypeVar("T")

# Shorter than the timeout of the client, so that a dead connection is detected.
WAIT_SECONDS = 20
EVENTS_AT_ONCE = 50
ACKNOWLEDGED_EVERY_SECONDS = 0.25
SERVICE_PAUSES = (0.5, 1.0, 2.0, 5.0)
# An error response is retried after these pauses; a refused connection is retried for ever.
RETRY_PAUSES = (1.0, 3.0)
RECEIVER_PAUSES = (0.25, 0.5, 1.0, 2.0)


@dataclass(slots=True)
class ListenLoop:
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
        """Wait until the service responds; an error in the key or a name is raised."""
        body = {"name": self.registered_as, "events": list(self.events)}
        listener = self._call_until_available(lambda: self.client.post("/v1/listeners", body))
        self._listener = listener["id"]
        self._done = self._acknowledged = listener["acknowledged"]
        return listener

    def run(self) -> None:
        """Forward events until interrupted."""
        while True:
            try:
                self._call_until_available(self._acknowledge)
                found = self._call_until_available(self._next)
            except UnknownResource:
                # The listener was deleted or expired; events of the time in between are lost.
                self.display.forgotten()
                self.register()
                continue
            for event in found:
                if event["position"] > self._done:
                    self._forward(event)

    def resend_last(self) -> None:
        """Send the last event again; this does not affect the acknowledgement."""
        event = self.forwarder.last
        if event is not None:
            self.display.attempted(event, self.forwarder.send(event), again=True)

    def acknowledge_on_exit(self) -> None:
        """Acknowledge what is done; if that fails, the next start forwards it again."""
        try:
            self._acknowledge()
        except (ServiceUnavailable, UnknownResource):
            return

    def _next(self) -> list[StreamedEvent]:
        found: list[StreamedEvent] = self.client.get(
            f"/v1/listeners/{self._listener}/events",
            wait=str(WAIT_SECONDS),
            limit=str(EVENTS_AT_ONCE),
        )["data"]
        return found

    def _forward(self, event: StreamedEvent) -> None:
        attempt = self._send_until_done(event)
        self.forwarded += attempt.succeeded
        self._done = event["position"]
        # Shown last, so that a user who then presses Ctrl-C sees it counted as forwarded.
        self.display.attempted(event, attempt, given_up=not attempt.succeeded)
        if time.monotonic() - self._acknowledged_at >= ACKNOWLEDGED_EVERY_SECONDS:
            try:
                self._acknowledge()
            except ServiceUnavailable:
                # The receiver has the event; go on, and acknowledge it later.
                return

    def _send_until_done(self, event: StreamedEvent) -> ForwardResult:
        """Send until the receiver responds with 2xx, or with an error three times."""
        failed, absent = 0, 0
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
            if failed == len(RETRY_PAUSES):
                return attempt
            self.display.attempted(event, attempt, next_in=RETRY_PAUSES[failed])
            self._pause.wait(RETRY_PAUSES[failed])
            failed += 1

    def _acknowledge(self) -> None:
        if self._done > self._acknowledged:
            done = self._done
            self.client.post(f"/v1/listeners/{self._listener}/acknowledge", {"upTo": done})
            self._acknowledged = done
            self._acknowledged_at = time.monotonic()

    def _call_until_available(self, call: Callable[[], T]) -> T:
        """Call until the service responds; reports the start and the end of an outage."""
        failed = 0
        while True:
            try:
                answer = call()
            except ServiceUnavailable as error:
                if failed == 0:
                    self.display.service_absent(str(error))
                self._pause.wait(SERVICE_PAUSES[min(failed, len(SERVICE_PAUSES) - 1)])
                failed += 1
            else:
                if failed:
                    self.display.service_back()
                return answer
