"""Sends events to a receiver on the developer's own machine; signs each attempt separately."""

import http.client
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import SplitResult, urlsplit

import click

import cuepost
from cuepost.domain.signing import SigningSecret, signature_header

TIMEOUT_SECONDS = 15.0

StreamedEvent = dict[str, Any]


class LocalUrl(click.ParamType[SplitResult]):
    name = "url"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> SplitResult:
        text = str(value)
        if text.isdecimal():
            text = f"localhost:{text}"
        if "://" not in text:
            text = f"http://{text}"
        try:
            parts = urlsplit(text)
            usable = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
        except ValueError:
            usable = False
        if not usable or not text.isascii() or not text.isprintable() or " " in text:
            self.fail(f"{value!r} is not a URL such as http://localhost:3000/hook.", param)
        return parts._replace(path=parts.path or "/", fragment="")


@dataclass(frozen=True, slots=True)
class ForwardResult:
    """The result of one attempt; `status` is None if there was no response.

    `refused` means that no process listens on that port.
    """

    status: int | None
    seconds: float
    fault: str = ""
    refused: bool = False

    @property
    def succeeded(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


@dataclass(slots=True)
class Forwarder:
    """Sends one request at a time, also when several threads call it."""

    target: SplitResult
    secret: SigningSecret = field(repr=False)
    now: Callable[[], datetime]
    last: StreamedEvent | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def send(self, event: StreamedEvent) -> ForwardResult:
        with self._lock:
            self.last = event
            began = time.monotonic()
            try:
                status = self._post(event)
            except ConnectionRefusedError:
                fault = "connection refused"
                return ForwardResult(None, time.monotonic() - began, fault, refused=True)
            except TimeoutError:
                fault = f"no response within {TIMEOUT_SECONDS:g} s"
            except (OSError, http.client.HTTPException) as error:
                fault = str(error) or type(error).__name__
            else:
                return ForwardResult(status, time.monotonic() - began)
            return ForwardResult(None, time.monotonic() - began, fault)

    def _post(self, event: StreamedEvent) -> int:
        body, timestamp = event["body"].encode(), int(self.now().timestamp())
        headers = {
            "content-type": "application/json; charset=utf-8",
            "user-agent": f"cuepost-listen/{cuepost.__version__}",
            "webhook-id": event["id"],
            "webhook-timestamp": str(timestamp),
            "webhook-signature": signature_header([self.secret], event["id"], timestamp, body),
        }
        connection = self._connection()
        try:
            path = self.target._replace(scheme="", netloc="").geturl()
            connection.request("POST", path, body, headers)
            return connection.getresponse().status
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        host, port = self.target.hostname or "", self.target.port
        if self.target.scheme == "https":
            return http.client.HTTPSConnection(host, port, timeout=TIMEOUT_SECONDS)
        return http.client.HTTPConnection(host, port, timeout=TIMEOUT_SECONDS)
