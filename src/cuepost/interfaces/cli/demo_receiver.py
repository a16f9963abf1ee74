"""The demo's receiver: accepts deliveries, responds with configured statuses, checks signatures.

It shares no code with the service, so that the check is independent of the code that signs.
"""

import hashlib
import hmac
import json
import threading
import time
from base64 import b64decode, b64encode
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

NO_CONTENT = 204


@dataclass(frozen=True, slots=True)
class Arrival:
    """One received request; `at` is a monotonic time in seconds."""

    headers: Mapping[str, str]
    body: bytes
    answered: int
    at: float

    @property
    def id(self) -> str:
        return self.headers.get("webhook-id", "")

    @property
    def event(self) -> dict[str, Any]:
        event: dict[str, Any] = json.loads(self.body)
        return event

    @property
    def signatures(self) -> list[str]:
        return self.headers.get("webhook-signature", "").split(" ")

    def is_signed_with(self, *secrets: str) -> bool:
        """Whether the request has one signature for each of these secrets, in this order."""
        return [_expected(self, secret) for secret in secrets] == self.signatures


class Receiver:
    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._arrivals: list[Arrival] = []
        self._answers: deque[int] = deque()
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    def answer_next(self, *statuses: int) -> None:
        """Respond to the next requests with these statuses; later ones get 204."""
        with self._changed:
            self._answers.extend(statuses)

    def count(self) -> int:
        with self._changed:
            return len(self._arrivals)

    def wait_for(self, number: int, seconds: float) -> Arrival | None:
        """The request with that index, or None if it does not arrive in time."""
        with self._changed:
            came = self._changed.wait_for(lambda: len(self._arrivals) > number, seconds)
            return self._arrivals[number] if came else None

    def take(self, headers: Mapping[str, str], body: bytes) -> int:
        with self._changed:
            status = self._answers.popleft() if self._answers else NO_CONTENT
            self._arrivals.append(Arrival(headers, body, status, time.monotonic()))
            self._changed.notify_all()
            return status


@contextmanager
def running_receiver() -> Iterator[Receiver]:
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", "0")))
            headers = {name.lower(): value for name, value in self.headers.items()}
            self.send_response(receiver.take(headers, body))
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Silence the access log of the base class."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        receiver.port = server.server_address[1]
        serving = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        serving.start()
        try:
            yield receiver
        finally:
            server.shutdown()
            serving.join()


def _expected(arrival: Arrival, secret: str) -> str:
    key = b64decode(secret.removeprefix("whsec_"))
    timestamp = arrival.headers.get("webhook-timestamp", "")
    signed = f"{arrival.id}.{timestamp}.".encode() + arrival.body
    return "v1," + b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
