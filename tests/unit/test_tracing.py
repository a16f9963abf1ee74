"""Spans of attempts, as a collector gets them."""

from dataclasses import replace

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from cuepost.adapters.tracing import traced
from cuepost.domain.attempt import Outcome
from cuepost.domain.delivery import DeliveryStatus
from cuepost.ports.dispatch import NextStep
from cuepost.ports.telemetry import NoTelemetry
from tests.support.otlp_collector import collector
from tests.unit.test_telemetry import CANARY, result

NANOS = 1_000_000_000


@pytest.fixture
def exported(monkeypatch: pytest.MonkeyPatch) -> list[Span]:
    """One attempt that failed, and one that did not."""
    failed = result()
    delivered = result(
        attempt={"outcome": Outcome.DELIVERED, "response_status": 204},
        next_step=NextStep(DeliveryStatus.DELIVERED),
    )
    with collector() as collected:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collected.url)
        with traced(NoTelemetry()) as telemetry:
            telemetry.attempted(failed)
            telemetry.attempted(delivered)
            telemetry.late(0)
    return collected.spans()


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
    with collector() as collected:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collected.url)
        with traced(NoTelemetry()) as telemetry:
            silent = result()
            telemetry.attempted(
                replace(silent, attempt=replace(silent.attempt, response_status=None))
            )
    [span] = collected.spans()
    assert "http.response.status_code" not in attributes(span)
