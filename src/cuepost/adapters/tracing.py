"""An OpenTelemetry span for each attempt.

Only this module and `otlp_metrics` need `cuepost[otel]`; they are imported only if it is enabled.
OpenTelemetry's own variables (`OTEL_EXPORTER_OTLP_ENDPOINT` and so on) say where spans go. Spans
hold ids, outcomes and times, but no URL, no header and nothing of a body.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, StatusCode, Tracer

from cuepost import __version__
from cuepost.domain.attempt import Outcome
from cuepost.domain.instants import to_millis
from cuepost.ports.dispatch import Result
from cuepost.ports.telemetry import Telemetry

_NANOS = 1_000_000


class Traced:
    """Telemetry that also creates spans."""

    def __init__(self, inner: Telemetry, tracer: Tracer) -> None:
        self._inner = inner
        self._tracer = tracer

    def attempted(self, result: Result) -> None:
        self._inner.attempted(result)
        assignment, attempt = result.assignment, result.attempt
        attributes: dict[str, str | int] = {
            "cuepost.account.id": str(assignment.account_id),
            "cuepost.webhook.id": str(assignment.webhook_id),
            "cuepost.delivery.id": str(assignment.delivery_id),
            "cuepost.event.id": str(assignment.event_id),
            "cuepost.attempt.number": assignment.number,
            "cuepost.attempt.budget": assignment.budget,
            "cuepost.attempt.trigger": assignment.trigger.value,
            "cuepost.outcome": attempt.outcome.value,
            "cuepost.delivery.status": result.next_step.status.value,
            "http.request.method": "POST",
        }
        if attempt.response_status is not None:
            attributes["http.response.status_code"] = attempt.response_status
        span = self._tracer.start_span(
            "attempt",
            kind=SpanKind.CLIENT,
            attributes=attributes,
            start_time=_nanos(attempt.started_at),
        )
        if attempt.outcome is not Outcome.DELIVERED:
            span.set_status(StatusCode.ERROR, attempt.outcome.value)
        ended_at = attempt.started_at + timedelta(milliseconds=attempt.duration_ms)
        span.end(_nanos(ended_at))

    def late(self, results: int) -> None:
        self._inner.late(results)

    def stalled(self, reason: str) -> None:
        self._inner.stalled(reason)


@contextmanager
def traced(inner: Telemetry) -> Iterator[Telemetry]:
    """Sends the remaining spans at the end of the block."""
    named = Resource.create({"service.name": "cuepost", "service.version": __version__})
    provider = TracerProvider(resource=named)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    try:
        yield Traced(inner, provider.get_tracer("cuepost", __version__))
    finally:
        provider.shutdown()


def _nanos(instant: datetime) -> int:
    return to_millis(instant) * _NANOS
