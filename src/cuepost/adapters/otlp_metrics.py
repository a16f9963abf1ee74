"""Sends the metrics of `/metrics` to an OpenTelemetry collector.

Only this module and `tracing` need `cuepost[otel]`; they are imported only if it is enabled.
OpenTelemetry's own variables (`OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_METRIC_EXPORT_INTERVAL` and so
on) say where the metrics go and how often.
"""

import asyncio
import os
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import datetime

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.samples import Sample

from cuepost import __version__
from cuepost.domain.instants import to_millis
from cuepost.ports.system import Clock

_NANOS = 1_000_000
_CUMULATIVE = AggregationTemporality.CUMULATIVE
_EVERY_MILLIS = "60000"
_BUCKET_LABEL = "le"


class MetricsPush:
    """Calls `refresh` before each export, to update the metrics that are read from the store."""

    def __init__(
        self, registry: CollectorRegistry, clock: Clock, refresh: Callable[[], Awaitable[None]]
    ) -> None:
        self._registry = registry
        self._clock = clock
        self._refresh = refresh
        self._started = clock.now()
        self._exporter = OTLPMetricExporter()
        self._every = int(os.environ.get("OTEL_METRIC_EXPORT_INTERVAL", _EVERY_MILLIS)) / 1_000

    async def run(self) -> None:
        while True:
            await self._clock.wait(self._every)
            await self.send()

    async def send(self) -> None:
        """The exporter itself logs failures and retries."""
        await self._refresh()
        found = metrics_data(self._registry, self._started, self._clock.now())
        await asyncio.to_thread(self._exporter.export, found)

    def close(self) -> None:
        self._exporter.shutdown()


def metrics_data(registry: CollectorRegistry, started: datetime, now: datetime) -> MetricsData:
    span = (to_millis(started) * _NANOS, to_millis(now) * _NANOS)
    metrics = [_metric(family, span) for family in registry.collect() if family.samples]
    scope = ScopeMetrics(InstrumentationScope("cuepost", __version__), metrics, "")
    resource = Resource.create({"service.name": "cuepost", "service.version": __version__})
    return MetricsData([ResourceMetrics(resource, [scope], "")])


def _metric(family: Family, span: tuple[int, int]) -> Metric:
    data: Gauge | Histogram | Sum
    if family.type == "histogram":
        data = Histogram(list(_histograms(family, span)), _CUMULATIVE)
    elif family.type == "counter":
        counted = [each for each in family.samples if each.name.endswith("_total")]
        data = Sum([_number(each, span) for each in counted], _CUMULATIVE, is_monotonic=True)
    else:
        data = Gauge([_number(each, span) for each in family.samples])
    unit = "s" if family.name.endswith("_seconds") else "1"
    return Metric(family.name, family.documentation, unit, data)


def _number(sample: Sample, span: tuple[int, int]) -> NumberDataPoint:
    return NumberDataPoint(dict(sample.labels), *span, sample.value)


def _histograms(family: Family, span: tuple[int, int]) -> Iterator[HistogramDataPoint]:
    """One for each set of labels. Buckets of OTLP are not cumulative, unlike Prometheus'."""
    by_labels: defaultdict[tuple[tuple[str, str], ...], list[Sample]] = defaultdict(list)
    for sample in family.samples:
        labels = {name: text for name, text in sample.labels.items() if name != _BUCKET_LABEL}
        by_labels[tuple(sorted(labels.items()))].append(sample)
    for named, samples in by_labels.items():
        yield _histogram(dict(named), samples, span)


def _histogram(
    labels: dict[str, str], samples: Sequence[Sample], span: tuple[int, int]
) -> HistogramDataPoint:
    buckets = [each for each in samples if each.name.endswith("_bucket")]
    below = [int(each.value) for each in buckets]
    [total] = [each.value for each in samples if each.name.endswith("_sum")]
    return HistogramDataPoint(
        attributes=labels,
        start_time_unix_nano=span[0],
        time_unix_nano=span[1],
        count=below[-1],
        sum=total,
        bucket_counts=[high - low for low, high in zip([0, *below], below, strict=False)],
        explicit_bounds=[float(each.labels[_BUCKET_LABEL]) for each in buckets[:-1]],
        min=float("nan"),
        max=float("nan"),
    )
