"""Spans of attempts, as a collector gets them."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from cuepost.adapters.tracing import traced
from cuepost.domain.attempt import Outcome
from cuepost.domain.delivery import DeliveryStatus
from cuepost.ports.dispatch import Verdict
from cuepost.ports.telemetry import Silent
from tests.unit.test_telemetry import CANARY, result

NANOS = 1_000_000_000


@contextmanager
def collector() -> Iterator[tuple[str, list[ExportTraceServiceRequest]]]:
    """Takes what an exporter sends, over HTTP on this machine."""
    taken: list[ExportTraceServiceRequest] = []

    class Taking(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            taken.append(ExportTraceServiceRequest.FromString(body))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Taking) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1/traces", taken
        finally:
            server.shutdown()
            thread.join(10)


@pytest.fixture
def exported(monkeypatch: pytest.MonkeyPatch) -> list[Span]:
    """One attempt that failed, and one that did not."""
    failed = result()
    delivered = result(
        attempt={"outcome": Outcome.DELIVERED, "response_status": 204},
        verdict=Verdict(DeliveryStatus.DELIVERED),
    )
    with collector() as (url, taken):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", url)
        with traced(Silent()) as telemetry:
            telemetry.attempted(failed)
            telemetry.attempted(delivered)
            telemetry.recorded(2, 0, failed.attempt.started_at)
    return [
        span
        for request in taken
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def attributes(span: Span) -> dict[str, object]:
    return {each.key: each.value.string_value or each.value.int_value for each in span.attributes}


def test_each_attempt_is_a_span_with_its_own_times(exported: list[Span]) -> None:
    attempt = result().attempt
    began = int(attempt.started_at.timestamp() * 1000) * NANOS // 1000
    for span in exported:
        assert span.kind == Span.SPAN_KIND_CLIENT
        assert span.start_time_unix_nano == began
        lasted = span.end_time_unix_nano - span.start_time_unix_nano
        assert lasted == pytest.approx(attempt.duration_ms * NANOS / 1000, abs=NANOS / 1000)


def test_a_span_says_how_it_ended(exported: list[Span]) -> None:
    failed, delivered = exported
    assert failed.status.code == Status.STATUS_CODE_ERROR
    assert delivered.status.code == Status.STATUS_CODE_UNSET
    assert attributes(delivered)["cuepost.outcome"] == "delivered"
    assert attributes(delivered)["http.response.status_code"] == 204
    assert attributes(failed)["cuepost.delivery.status"] == "retrying"


def test_nothing_that_is_secret_or_foreign_is_in_a_span(exported: list[Span]) -> None:
    assert CANARY not in str(exported)
    assert len(exported) == 2


def test_an_attempt_that_got_no_answer_has_no_status(monkeypatch: pytest.MonkeyPatch) -> None:
    with collector() as (url, taken):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", url)
        with traced(Silent()) as telemetry:
            silent = result()
            telemetry.attempted(
                replace(silent, attempt=replace(silent.attempt, response_status=None))
            )
    [span] = taken[0].resource_spans[0].scope_spans[0].spans
    assert "http.response.status_code" not in attributes(span)
