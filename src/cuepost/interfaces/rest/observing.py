"""The ASGI application, with request ids, access log lines and metrics for every request."""

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from time import perf_counter

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from starlette.applications import Starlette
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cuepost import __version__
from cuepost.interfaces.rest.request_ids import PROBLEM, with_id
from cuepost.interfaces.wire_models.request_notes import CALLER, OPERATION, REQUEST_ID
from cuepost.log_lines import REQUEST_ID as CURRENT_REQUEST
from cuepost.log_lines import LogLines

logger = logging.getLogger("cuepost.rest")

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})
_CLIENT_CLOSED_REQUEST = 499
_FIRST_ERROR = 400

HEADER = b"x-request-id"
# Request ids from clients; they are written to log lines, so spaces and quotes are not allowed.
_GIVEN = re.compile(rb"[A-Za-z0-9._:-]{1,64}")


class RequestIds:
    """A random prefix per process and a counter, which needs no randomness per request."""

    def __init__(self, entropy: Callable[[int], bytes]) -> None:
        self._beginning = entropy(8).hex()
        self._numbers = count(1)

    def of(self, scope: Scope) -> str:
        """The id in the request header if it is valid, otherwise a new one."""
        for name, value in scope["headers"]:
            if name == HEADER and _GIVEN.fullmatch(value):
                given: str = value.decode("ascii")
                return given
        return f"{self._beginning}-{next(self._numbers):x}"


class RequestMetrics:
    """Labels are operations, methods and status classes only, to limit the number of series."""

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
        build = Gauge("cuepost_build_info", "The running version.", ("version",), registry=registry)
        build.labels(__version__).set(1)

    def note(self, operation: str, method: str, status: int, seconds: float) -> None:
        """`method` is one of `_METHODS`, or "other"."""
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


class RestApp(Starlette):
    """Measures and logs requests, adds their ids, and passes them to the handlers of their paths.

    A path without parameters is looked up in a dictionary, other paths by the router. The
    dictionary is faster for the call that reports milestones, which has most of the traffic.
    """

    def __init__(
        self,
        handlers: Mapping[str, ASGIApp],
        routes: Sequence[BaseRoute],
        metrics: RequestMetrics,
        ids: RequestIds,
    ) -> None:
        super().__init__(routes=routes)
        self._handlers = {path: handler for path, handler in handlers.items() if "{" not in path}
        self._metrics = metrics
        self._ids = ids
        self._lines = LogLines(logger)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await super().__call__(scope, receive, send)
            return
        handler = self._handlers.get(scope["path"], super().__call__)
        started, status = perf_counter(), _CLIENT_CLOSED_REQUEST
        scope[REQUEST_ID] = request_id = self._ids.of(scope)
        logged_with = CURRENT_REQUEST.set(request_id)
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
            CURRENT_REQUEST.reset(logged_with)
            self._note(scope, status, perf_counter() - started)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        operation, method = scope.get(OPERATION, "none"), scope["method"]
        method = method if method in _METHODS else "other"
        self._metrics.note(operation, method, status, seconds)
        if logger.isEnabledFor(logging.INFO):
            client = scope.get("client")
            self._lines.add(
                f"event=request operation={operation} method={method} status={status} "
                f"ms={seconds * 1000:.1f} caller={scope.get(CALLER, '-')} "
                f"client={client[0] if client else '-'} request={scope[REQUEST_ID]}"
            )
