"""Counts and distributions kept as plain numbers; they become metrics when they are collected.

The metrics library takes a lock and several calls for each number, and every attempt has four.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString


class Tally(Collector):
    """Counts how often each of `values` was seen."""

    def __init__(
        self,
        name: str,
        meaning: str,
        label: str,
        values: Sequence[str],
        registry: CollectorRegistry,
    ) -> None:
        self._named = (name, meaning)
        self._label = label
        self.of = dict.fromkeys(values, 0)
        registry.register(self)

    def collect(self) -> Iterator[Metric]:
        family = CounterMetricFamily(*self._named, labels=[self._label])
        for value, count in self.of.items():
            family.add_metric([str(value)], count)
        yield family


class Distribution(Collector):
    """A histogram: how many numbers are not above each bound, and their sum."""

    def __init__(
        self, name: str, meaning: str, bounds: Sequence[float], registry: CollectorRegistry
    ) -> None:
        self._named = (name, meaning)
        self._bounds = (*bounds, float("inf"))
        self._counts = [0] * len(self._bounds)
        self._sum = 0.0
        registry.register(self)

    def observe(self, number: float) -> None:
        self._counts[bisect_left(self._bounds, number)] += 1
        self._sum += number

    def collect(self) -> Iterator[Metric]:
        bounds = map(floatToGoString, self._bounds)
        buckets = list(zip(bounds, accumulate(self._counts), strict=True))
        yield HistogramMetricFamily(*self._named, buckets=buckets, sum_value=self._sum)
