"""The ASGI application, with request ids, access log lines and metrics for every request."""

import logging
import re
from collections.abc import Mapping, Sequence
from itertools import count
from time import perf_counter

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from starlette.applications import Starlette
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cuepost import __version__
from cuepost.interfaces.wire_models.request_notes import CALLER, OPERATION
from cuepost.log_lines import REQUEST_ID, LogLines
from cuepost.ports.system import Entropy

logger = logging.getLogger("cuepost.rest")

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})
_CLIENT_CLOSED_REQUEST = 499
_FIRST_ERROR = 400

PROBLEM = (b"content-type", b"application/problem+json")
HEADER = b"x-request-id"
# Request ids from clients; they are written to log lines, so spaces and quotes are not allowed.
_GIVEN = re.compile(rb"[A-Za-z0-9._:-]{1,64}")


class RequestTelemetry:
    """A log line and metrics for each request.

    Labels are operations, methods and status classes only, to limit the number of series.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = Counter(
            "cuepost_http_requests",
            "Requests that got a response.",
            ("operation", "method", "status"),
            registry=registry,
        )
        self._seconds = Histogram(
            "cuepost_http_request_seconds",
            "Time from the head of a request to the end of its response.",
            ("operation",),
            buckets=_BUCKETS,
            registry=registry,
        )
        self._known: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        self._lines = LogLines(logger)
        build = Gauge("cuepost_build_info", "The running version.", ("version",), registry=registry)
        build.labels(__version__).set(1)

    def answered(self, scope: Scope, status: int, seconds: float) -> None:
        operation, method = scope.get(OPERATION, "none"), scope["method"]
        method = method if method in _METHODS else "other"
        kind = (operation, method, status // 100)
        known = self._known.get(kind)
        if known is None:
            known = self._known[kind] = (
                self._requests.labels(operation, method, f"{status // 100}xx"),
                self._seconds.labels(operation),
            )
        requests, duration = known
        requests.inc()
        duration.observe(seconds)
        if logger.isEnabledFor(logging.INFO):
            client = scope.get("client")
            self._lines.add(
                f"event=request operation={operation} method={method} status={status} "
                f"ms={seconds * 1000:.1f} caller={scope.get(CALLER, '-')} "
                f"client={client[0] if client else '-'} request={REQUEST_ID.get()}"
            )


class RestApp(Starlette):
    """Measures and logs requests, adds their ids, and passes them to the handlers of their paths.

    A path without parameters is looked up in a dictionary, other paths by the router. The
    dictionary is faster for the call that reports milestones, which has most of the traffic.

    A new id is a random prefix per process and a counter, which needs no randomness per request.
    """

    def __init__(
        self,
        handlers: Mapping[str, ASGIApp],
        routes: Sequence[BaseRoute],
        telemetry: RequestTelemetry,
        entropy: Entropy,
    ) -> None:
        super().__init__(routes=routes)
        self._handlers = {path: handler for path, handler in handlers.items() if "{" not in path}
        self._telemetry = telemetry
        self._beginning = entropy(8).hex()
        self._numbers = count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await super().__call__(scope, receive, send)
            return
        handler = self._handlers.get(scope["path"], super().__call__)
        started, status = perf_counter(), _CLIENT_CLOSED_REQUEST
        given = [v for name, v in scope["headers"] if name == HEADER and _GIVEN.fullmatch(v)]
        request_id = given[0].decode() if given else f"{self._beginning}-{next(self._numbers):x}"
        logged_with = REQUEST_ID.set(request_id)
        head: Message | None = None

        async def watched(message: Message) -> None:
            nonlocal status, head
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [*message.get("headers", ()), (HEADER, request_id.encode())]
                message = {**message, "headers": headers}
                if status >= _FIRST_ERROR and PROBLEM in headers:
                    head = message
                    return
            elif head is not None:
                first, message = with_id(head, message, request_id)
                head = None
                await send(first)
            await send(message)

        try:
            await handler(scope, receive, watched)
        except Exception:
            status = 500
            raise
        finally:
            self._telemetry.answered(scope, status, perf_counter() - started)
            REQUEST_ID.reset(logged_with)


def with_id(head: Message, message: Message, request_id: str) -> tuple[Message, Message]:
    """Head and body of a problem document, with the id as its last member.

    The id is added when the response is sent: a stored response is replayed with other ids. A body
    in several pieces, which this service never sends, is left unchanged.
    """
    if message.get("more_body"):
        return head, message
    member, body = f',"requestId":"{request_id}"}}'.encode(), message.get("body", b"")
    headers = [
        (name, b"%d" % (int(value) + len(member) - 1)) if name == b"content-length" else pair
        for pair in head["headers"]
        for name, value in (pair,)
    ]
    # The response to HEAD has no body, but the content length of the response to GET.
    body = body[:-1] + member if body else b""
    return {**head, "headers": headers}, {**message, "body": body}
