"""A log line for each attempt, and Prometheus metrics.

Neither contains secrets, URLs or parts of a body, and no metric names an account. What is counted
for every attempt is kept as plain numbers, which become metrics when they are collected: the
metrics library takes a lock and several calls for each number, and an attempt has four.
"""

import asyncio
import logging
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from math import inf

from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from cuepost.adapters.guarded_transport import Unusable
from cuepost.domain.attempt import Outcome
from cuepost.domain.delivery import LIVE, DeliveryStatus, Trigger
from cuepost.domain.instants import millis_of, to_millis, to_text
from cuepost.log_lines import LogLines, log_store_error
from cuepost.ports.dispatch import Result
from cuepost.ports.store import Contention, Store, StoreUnavailable
from cuepost.ports.system import Clock
from cuepost.ports.telemetry import Waiting
from cuepost.ports.transport import Request

logger = logging.getLogger("cuepost.attempt")

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 30.0)
_DELAYS = (*_SECONDS, 60.0, 300.0, 1_800.0, 7_200.0)


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


class EngineTelemetry:
    def __init__(self, registry: CollectorRegistry) -> None:
        self._attempts = Tally(
            "cuepost_attempts", "Attempts that have ended.", "outcome", list(Outcome), registry
        )
        self._ended = Tally(
            "cuepost_deliveries_ended",
            "Deliveries that were ended by an attempt, as that attempt decided.",
            "status",
            (DeliveryStatus.DELIVERED, DeliveryStatus.FAILED),
            registry,
        )
        self._duration = Distribution(
            "cuepost_attempt_seconds",
            "Time that an attempt takes, from DNS to the head of the answer.",
            _SECONDS,
            registry,
        )
        self._delay = Distribution(
            "cuepost_first_attempt_delay_seconds",
            "Time from the creation of an event to the start of the first attempt to send it.",
            _DELAYS,
            registry,
        )
        self._late = Counter(
            "cuepost_late_results",
            "Results that came after another worker had taken the delivery over.",
            registry=registry,
        )
        self._stalls = Counter(
            "cuepost_engine_stalls",
            "How often deliveries have stopped although work was due and capacity was free.",
            registry=registry,
        )
        self._unusable = _unusable_destinations(registry)
        self._lines = LogLines(logger)
        self._add_gauges(registry)

    def _add_gauges(self, registry: CollectorRegistry) -> None:
        self._stalled = Gauge(
            "cuepost_engine_stalled",
            "1 while deliveries have stopped although work is due and capacity is free.",
            registry=registry,
        )
        self._clock_ahead = Gauge(
            "cuepost_clock_ahead_seconds",
            "How far this machine's clock is ahead of the database's; below 0 it is behind.",
            registry=registry,
        )
        self._in_flight = Gauge(
            "cuepost_attempts_in_flight", "Attempts that this process is making.", registry=registry
        )
        self._held = Gauge(
            "cuepost_deliveries_held",
            "Deliveries in this process' memory, those in flight among them.",
            registry=registry,
        )

    def watch(
        self,
        *,
        in_flight: Callable[[], float],
        held: Callable[[], float],
        stalled: Callable[[], float],
        clock_ahead: Callable[[], float],
    ) -> None:
        """The functions are called when metrics are collected."""
        self._in_flight.set_function(in_flight)
        self._held.set_function(held)
        self._stalled.set_function(stalled)
        self._clock_ahead.set_function(clock_ahead)

    def attempted(self, result: Result) -> None:
        assignment, attempt, next_step = result.assignment, result.attempt, result.next_step
        self._attempts.of[attempt.outcome] += 1
        self._duration.observe(attempt.duration_ms / 1_000)
        is_first = assignment.number == 1 and assignment.budget == 1
        if is_first and assignment.trigger is Trigger.AUTOMATIC:
            waited = to_millis(attempt.started_at) - millis_of(assignment.event_id)
            self._delay.observe(max(waited, 0) / 1_000)
        if next_step.status in self._ended.of:
            self._ended.of[next_step.status] += 1
        if not logger.isEnabledFor(logging.INFO):
            return
        target, timings, due_at = assignment.target, attempt.timings, next_step.due_at
        phases = (timings.dns_ms, timings.connect_ms, timings.tls_ms, timings.first_byte_ms)
        dns, connect, tls, first_byte = ["-" if ms is None else f"{ms:.1f}" for ms in phases]
        self._lines.add(
            f"account={target.account_id} webhook={target.webhook_id} "
            f"delivery={assignment.delivery_id} event={assignment.event_id} "
            f"type={assignment.event_type} budget={assignment.budget} number={assignment.number} "
            f"trigger={assignment.trigger} outcome={attempt.outcome} "
            f"status={attempt.response_status or '-'} ms={attempt.duration_ms:.1f} "
            f"dns_ms={dns} connect_ms={connect} tls_ms={tls} first_byte_ms={first_byte} "
            f"verdict={next_step.status} due_again={'-' if due_at is None else to_text(due_at)}"
        )

    def unusable(self, why: Unusable, request: Request) -> None:
        self._unusable.of[why] += 1
        event_id = next((value for name, value in request.headers if name == "webhook-id"), "-")
        if logger.isEnabledFor(logging.INFO):
            self._lines.add(f"destination_unusable={why} event={event_id}")

    def late(self, results: int) -> None:
        self._late.inc(results)

    def stalled(self, reason: str) -> None:
        self._stalls.inc()


class BacklogMetrics(Collector):
    """The backlog of the store, read when metrics are collected and cached for a moment."""

    KEPT_SECONDS = 2.0
    TIMEOUT_SECONDS = 2.0

    def __init__(self, store: Store, clock: Clock, registry: CollectorRegistry) -> None:
        self._store = store
        self._clock = clock
        self._turn = asyncio.Lock()
        self._fresh_until = -inf
        self._waiting: Mapping[DeliveryStatus, Waiting] = {}
        registry.register(self)

    async def refresh(self) -> None:
        """If the store does not answer, only its metrics are missing."""
        async with self._turn:
            read_at = self._clock.monotonic()
            if read_at < self._fresh_until:
                return
            self._waiting = {}
            try:
                async with asyncio.timeout(self.TIMEOUT_SECONDS), self._store.snapshot() as look:
                    self._waiting = await look.backlog.waiting(self._clock.now())
            except (Contention, StoreUnavailable, TimeoutError) as error:
                log_store_error(logger, "backlog_not_read", error, "metrics")
            self._fresh_until = read_at + self.KEPT_SECONDS

    def collect(self) -> Iterator[Metric]:
        count = GaugeMetricFamily(
            "cuepost_deliveries_waiting",
            "Deliveries in the queue of all processes; of the pending and retrying ones no more "
            "than the 10,000 that are due first are counted.",
            labels=("state",),
        )
        overdue = GaugeMetricFamily(
            "cuepost_oldest_due_seconds",
            "For how long the oldest delivery in that state has been due; 0 while none is.",
            labels=("state",),
        )
        for state in LIVE:
            if state in self._waiting:
                count.add_metric([state.value], self._waiting[state].count)
                overdue.add_metric([state.value], self._waiting[state].overdue.total_seconds())
        yield count
        yield overdue


class TaskMetrics(Collector):
    """The number of tasks of this process; constant growth indicates a leak."""

    def __init__(self, registry: CollectorRegistry) -> None:
        registry.register(self)

    def collect(self) -> Iterator[Metric]:
        tasks = len(asyncio.all_tasks())
        yield GaugeMetricFamily("cuepost_tasks", "Tasks of this process' event loop.", tasks)


def _unusable_destinations(registry: CollectorRegistry) -> Tally:
    return Tally(
        "cuepost_unusable_destinations",
        "Attempts that were not made because the receiver's name has no address, or a denied one; "
        "accounts see `blocked_destination` for both.",
        "reason",
        list(Unusable),
        registry,
    )
