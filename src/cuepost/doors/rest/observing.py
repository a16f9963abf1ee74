"""A log line and two measurements for every request: which call, how it ended, how long it took."""

import logging
from time import perf_counter

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cuepost import __version__
from cuepost.doors.wire_models.request_notes import CALLER, OPERATION
from cuepost.log_lines import LogLines

logger = logging.getLogger("cuepost.rest")

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})
_HUNG_UP = 499


class RequestMetrics:
    """No account, no key, no address: operations, methods and classes of statuses alone."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = Counter(
            "cuepost_http_requests",
            "Requests that were answered.",
            ("operation", "method", "status"),
            registry=registry,
        )
        self._seconds = Histogram(
            "cuepost_http_request_seconds",
            "Time from the head of a request to the end of its answer.",
            ("operation",),
            buckets=_BUCKETS,
            registry=registry,
        )
        self._known: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        build = Gauge("cuepost_build_info", "The running version.", ("version",), registry=registry)
        build.labels(__version__).set(1)

    def note(self, operation: str, method: str, status: int, seconds: float) -> None:
        """Of a method that has a name here, or "other"."""
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


class Observed:
    """Wraps the application; sees statuses, never contents."""

    def __init__(self, app: ASGIApp, metrics: RequestMetrics) -> None:
        self._app = app
        self._metrics = metrics
        self._lines = LogLines(logger)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = perf_counter(), _HUNG_UP

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Exception:
            status = 500
            raise
        finally:
            self._note(scope, status, perf_counter() - started)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        operation, method = scope.get(OPERATION, "none"), scope["method"]
        method = method if method in _METHODS else "other"
        self._metrics.note(operation, method, status, seconds)
        if self._lines.are_wanted:
            self._lines.add(
                f"event=request operation={operation} method={method} status={status} "
                f"ms={seconds * 1000:.1f} caller={scope.get(CALLER, '-')}"
            )
