"""What `/metrics` shows, as a collector of OpenTelemetry gets it."""

import asyncio
from pathlib import Path

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, Metric
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from cuepost.adapters.otlp_metrics import MetricsPush
from cuepost.adapters.telemetry import Distribution
from cuepost.testing import START, VirtualClock
from tests.support.otlp_collector import collector
from tests.support.service_process import ServiceProcess, free_port

NANOS = 1_000_000_000


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> dict[str, Metric]:
    registry, refreshed = CollectorRegistry(), []
    Counter("requests", "Requests.", ("status",), registry=registry).labels("2xx").inc(3)
    Counter("never", "Nothing yet.", ("status",), registry=registry)
    Gauge("waiting", "Waiting.", registry=registry).set(7)
    spread = Histogram("delay_seconds", "Delay.", ("kind",), buckets=(1, 5), registry=registry)
    for kind, seconds in (("a", 0.5), ("a", 3), ("a", 9), ("b", 1)):
        spread.labels(kind).observe(seconds)
    Distribution("own_seconds", "Of our own.", (1.0, 5.0), registry).observe(2.0)

    async def push() -> None:
        clock = VirtualClock()

        async def refresh() -> None:
            refreshed.append(clock.now())

        made = MetricsPush(registry, clock, refresh)
        try:
            await made.send()
        finally:
            made.close()

    with collector() as collected:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collected.url)
        asyncio.run(push())
    assert refreshed == [START]
    return collected.last_metrics()


def test_counters_are_sums_that_only_grow(sent: dict[str, Metric]) -> None:
    assert sent["requests"].sum.is_monotonic
    cumulative = AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE
    assert sent["requests"].sum.aggregation_temporality == cumulative
    [point] = sent["requests"].sum.data_points
    assert point.as_double == 3
    assert [(each.key, each.value.string_value) for each in point.attributes] == [("status", "2xx")]
    assert point.time_unix_nano == int(START.timestamp() * 1000) * NANOS // 1000
    assert "never" not in sent


def test_gauges_are_what_they_are_now(sent: dict[str, Metric]) -> None:
    [point] = sent["waiting"].gauge.data_points
    assert point.as_double == 7
    assert sent["waiting"].description == "Waiting."


def test_histograms_count_between_their_bounds(sent: dict[str, Metric]) -> None:
    first, second = sent["delay_seconds"].histogram.data_points
    assert (list(first.bucket_counts), list(first.explicit_bounds)) == ([1, 1, 1], [1.0, 5.0])
    assert (first.count, first.sum) == (3, 12.5)
    assert (list(second.bucket_counts), second.count) == ([1, 0, 0], 1)
    [own] = sent["own_seconds"].histogram.data_points
    assert (list(own.bucket_counts), own.sum) == ([0, 1, 0], 2.0)
    assert sent["own_seconds"].unit == "s"


def test_a_service_sends_its_metrics_when_it_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"DATA_DIR": str(tmp_path), "PORT": str(free_port()), "OTLP_METRICS": "true"}
    with collector() as collected:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collected.url)
        with ServiceProcess(settings) as service:
            assert service.stop().code == 0
    assert {"cuepost_attempts", "cuepost_deliveries_waiting", "cuepost_build_info"} <= set(
        collected.last_metrics()
    )
