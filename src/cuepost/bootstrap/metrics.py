"""One registry for everything that a process measures, and its way to `/metrics`."""

from dataclasses import dataclass

from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp, Receive, Scope, Send

from cuepost.adapters.telemetry import BacklogMetrics, EngineTelemetry, TaskMetrics
from cuepost.bootstrap.parts import Parts

PATH = "/metrics"


@dataclass(frozen=True, slots=True)
class Metrics:
    registry: CollectorRegistry
    engine: EngineTelemetry
    backlog: BacklogMetrics

    @classmethod
    def of(cls, parts: Parts) -> "Metrics":
        registry = CollectorRegistry()
        TaskMetrics(registry)
        backlog = BacklogMetrics(parts.store, parts.ambient.clock, registry)
        return cls(registry, EngineTelemetry(registry), backlog)

    def refreshed_in(self, app: ASGIApp) -> ASGIApp:
        """Metrics are written without waiting; what needs the store is read just before."""

        async def refreshing(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http" and scope["path"] == PATH:
                await self.backlog.refresh()
            await app(scope, receive, send)

        return refreshing
