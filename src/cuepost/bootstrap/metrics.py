"""The registry of all metrics of a process, and how they are pushed to a collector."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import import_module

from prometheus_client import CollectorRegistry

from cuepost.adapters.telemetry import BacklogMetrics, EngineTelemetry, TaskMetrics
from cuepost.bootstrap.container import Container
from cuepost.bootstrap.extras import require
from cuepost.bootstrap.inbound_guard import InboundMetrics
from cuepost.interfaces.rest.observing import RequestTelemetry


@dataclass(frozen=True, slots=True)
class Metrics:
    registry: CollectorRegistry
    engine: EngineTelemetry
    backlog: BacklogMetrics
    inbound: InboundMetrics
    requests: RequestTelemetry

    @classmethod
    def of(cls, container: Container) -> "Metrics":
        registry = CollectorRegistry()
        TaskMetrics(registry)
        backlog = BacklogMetrics(container.store, container.system.clock, registry)
        return cls(
            registry,
            EngineTelemetry(registry),
            backlog,
            InboundMetrics(registry),
            RequestTelemetry(registry),
        )


@asynccontextmanager
async def pushed(container: Container, metrics: Metrics) -> AsyncIterator[None]:
    """Push the metrics to a collector, if the settings say so; the last time at the end."""
    if not container.settings.otlp_metrics:
        yield
        return
    require("otel", "CUEPOST_OTLP_METRICS is true")
    made = import_module("cuepost.adapters.otlp_metrics").MetricsPush(
        metrics.registry, container.system.clock, metrics.backlog.refresh
    )
    try:
        async with asyncio.TaskGroup() as group:
            sending = group.create_task(made.run())
            yield
            sending.cancel()
        await made.send()
    finally:
        made.close()
