"""Runs the server, the delivery and the maintenance jobs until a signal stops them."""

import asyncio
import gc
import logging
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta

from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from cuepost.application.provider_sign_in import SignInWithProvider
from cuepost.application.rekey import Rekey
from cuepost.bootstrap.container import Container, running
from cuepost.bootstrap.delivery import Delivery, announcing, delivering
from cuepost.bootstrap.extras import is_installed
from cuepost.bootstrap.mail import smtp_mailer
from cuepost.bootstrap.metrics import Metrics, pushed
from cuepost.bootstrap.openid import provider_sign_in
from cuepost.bootstrap.state_dump import showing_state
from cuepost.bootstrap.web_server import GracefulServer, create_server, listening
from cuepost.engine.maintenance import MaintenanceRunner, maintenance_jobs
from cuepost.interfaces.cli.runtime import CommandContext, Work
from cuepost.interfaces.mcp.app import McpApp
from cuepost.interfaces.mcp.authentication import own_hosts
from cuepost.interfaces.media.app import media_routes
from cuepost.interfaces.rest.app import create_app, create_health_app
from cuepost.interfaces.rest.open_pages import HealthChecks
from cuepost.interfaces.web.app import create_pages
from cuepost.ports.system import CannotOpen
from cuepost.settings import Settings

# More than the deliveries in memory consist of, because none of that is garbage.
OBJECTS_BETWEEN_COLLECTIONS = 50_000

logger = logging.getLogger("cuepost")


class OneProcessOnly(Exception):
    """Only 'cuepost serve' can send from an embedded store; 'cuepost worker' needs PostgreSQL."""

    def __init__(self) -> None:
        super().__init__(type(self).__doc__)


async def serve(settings: Settings, greet: Work[None], *, sending: bool) -> None:
    """Run the API, and with `sending` the delivery as well."""
    with (
        _unwrapped_errors(),
        listening(settings.host, settings.port, "CUEPOST_PORT") as listener,
        _listening_for_metrics(settings) as metrics_listener,
    ):
        async with (
            _ready(settings) as (container, metrics),
            _delivery_or_announcing(container, metrics, sending=sending) as delivery,
            provider_sign_in(container) as provider,
        ):
            tools, stopping = _mcp_app(container), asyncio.Event()
            routes = _further_routes(container, tools, stopping, provider, delivery)
            app = _api(container, metrics, _health(container, metrics, delivery), routes)
            server = create_server(app, metrics, settings)
            stop = _stop_all(server, container, stopping)
            with _stopped_by_signals(stop), showing_state(delivery):
                _tune_garbage_collector()
                await greet(CommandContext(container.service, settings))
                async with (
                    _running_maintenance(container),
                    tools.running(),
                    _serving_health(container, metrics, delivery, metrics_listener),
                ):
                    await server.serve(sockets=[listener])


async def work(settings: Settings, greet: Work[None]) -> None:
    """Run only the delivery."""
    if settings.database_url.path is not None:
        raise OneProcessOnly
    with _unwrapped_errors(), _listening_for_worker(settings) as listener:
        async with (
            _ready(settings) as (container, metrics),
            delivering(container, metrics.engine) as delivery,
            _running_maintenance(container),
        ):
            stop = asyncio.Event()
            with _stopped_by_signals(stop.set), showing_state(delivery):
                _tune_garbage_collector()
                await greet(CommandContext(container.service, settings))
                async with _serving_health(container, metrics, delivery, listener):
                    await stop.wait()


@asynccontextmanager
async def _serving_health(
    container: Container,
    metrics: Metrics,
    delivery: Delivery | None,
    listener: socket.socket | None,
) -> AsyncIterator[None]:
    """Serve health and metrics on a separate port, if `listener` is given."""
    if listener is None:
        yield
        return
    app = create_health_app(
        _health(container, metrics, delivery),
        metrics.registry,
        metrics.requests,
        container.system.entropy,
    )
    server = create_server(app, metrics, container.settings)
    async with asyncio.TaskGroup() as group:
        group.create_task(server.serve(sockets=[listener]))
        yield
        server.stop()


@contextmanager
def _unwrapped_errors() -> Iterator[None]:
    """Unwrap a single error from its exception groups, so that it can be shown in one line."""
    try:
        yield
    except ExceptionGroup as group:
        fault: Exception = group
        while isinstance(fault, ExceptionGroup) and len(fault.exceptions) == 1:
            [fault] = fault.exceptions
        raise fault from None


@asynccontextmanager
async def _ready(settings: Settings) -> AsyncIterator[tuple[Container, Metrics]]:
    async with running(settings, wait_for_database=True) as container:
        _warn_of_local_key(settings)
        await _require_master_key(container.service.maintenance.master_keys)
        metrics = Metrics.of(container)
        async with pushed(container, metrics):
            yield container, metrics


@asynccontextmanager
async def _delivery_or_announcing(
    container: Container, metrics: Metrics, *, sending: bool
) -> AsyncIterator[Delivery | None]:
    if sending:
        async with delivering(container, metrics.engine) as delivery:
            yield delivery
    else:
        async with announcing(container):
            yield None


@contextmanager
def _listening_for_metrics(settings: Settings) -> Iterator[socket.socket | None]:
    host, port = settings.metrics_host, settings.metrics_port
    if port is None:
        yield None
    else:
        with listening(host, port, "CUEPOST_METRICS_PORT") as listener:
            yield listener


@contextmanager
def _listening_for_worker(settings: Settings) -> Iterator[socket.socket | None]:
    if settings.worker_port is None:
        yield None
    else:
        with listening(settings.host, settings.worker_port, "CUEPOST_WORKER_PORT") as listener:
            yield listener


def _warn_of_local_key(settings: Settings) -> None:
    if settings.database_url.path is None and settings.master_key is None:
        logger.warning(
            "the master key is a file of this machine; if other processes use this database, "
            "give all of them the same CUEPOST_MASTER_KEY"
        )


async def _require_master_key(master_keys: Rekey) -> None:
    """Find a wrong master key at the start, and not at the first delivery."""
    found = await master_keys.keys_of_secrets()
    if found.lost and found.lost == sum(found.counts.values()):
        raise CannotOpen
    if found.lost:
        logger.error(
            "event=master_key_missing secrets=%d keys=%s", found.lost, ",".join(found.unknown)
        )


def _api(
    container: Container,
    metrics: Metrics,
    health: HealthChecks,
    further_routes: Sequence[BaseRoute],
) -> ASGIApp:
    base_url = container.settings.base_url
    return create_app(
        container.service,
        base_url=base_url,
        health=health,
        registry=metrics.registry,
        requests=metrics.requests,
        further_routes=further_routes,
        with_metrics=container.settings.metrics_port is None,
    )


def _further_routes(
    container: Container,
    tools: McpApp,
    stopping: asyncio.Event,
    provider: SignInWithProvider | None,
    delivery: Delivery | None,
) -> Sequence[BaseRoute]:
    pages = create_pages(
        container.service,
        base_url=container.settings.base_url,
        is_stopping=stopping.is_set,
        provider=provider,
        dispatcher=delivery.readiness if delivery else None,
        for_operators=container.settings.operator_pages,
        frame_ancestors=container.settings.frame_ancestors,
    )
    return [*media_routes(container.service), *tools.routes(), *pages]


def _mcp_app(container: Container) -> McpApp:
    settings = container.settings
    hosts = own_hosts(settings.base_url, settings.host, settings.port)
    return McpApp(container.service, settings.base_url, hosts, is_installed=is_installed("mcp"))


def _health(container: Container, metrics: Metrics, delivery: Delivery | None) -> HealthChecks:
    return HealthChecks(
        container.store.check,
        delivery.readiness if delivery else None,
        container.service.maintenance.master_keys.keys_of_secrets,
        metrics.backlog.refresh,
    )


def _stop_all(
    server: GracefulServer, container: Container, stopping: asyncio.Event
) -> Callable[[], None]:
    """Answers waiting listeners at once, because the server waits for open requests."""

    def stop() -> None:
        stopping.set()
        container.service.listeners.stop_waiting()
        server.stop()

    return stop


def _tune_garbage_collector() -> None:
    """Exclude existing objects from garbage collection, and collect less often.

    The collector took a twentieth of the time of a busy service, and found next to nothing.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)


@contextmanager
def _stopped_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    loop, signals = asyncio.get_running_loop(), (signal.SIGINT, signal.SIGTERM)
    for each in signals:
        loop.add_signal_handler(each, stop)
    try:
        yield
    finally:
        for each in signals:
            loop.remove_signal_handler(each)


@asynccontextmanager
async def _running_maintenance(container: Container) -> AsyncIterator[None]:
    clock = container.system.clock
    retention = timedelta(days=container.settings.retention_days)
    mailer = smtp_mailer(container.settings, clock)
    jobs = maintenance_jobs(container.store, container.service, clock, retention, mailer)
    async with asyncio.TaskGroup() as group:
        maintenance = group.create_task(MaintenanceRunner(clock, jobs).run())
        yield
        maintenance.cancel()
