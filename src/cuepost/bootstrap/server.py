"""Serves: a socket, the web application and the housekeeping, until a signal says stop."""

import asyncio
import errno
import gc
import logging
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta

import uvicorn
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from cuepost.bootstrap.delivery import Delivery, announcing, delivering
from cuepost.bootstrap.lined_protocol import LinedProtocol
from cuepost.bootstrap.metrics import Metrics
from cuepost.bootstrap.parts import Parts, running
from cuepost.bootstrap.state_dump import showing_state
from cuepost.doors.cli.house import Opened, Work
from cuepost.doors.mcp.door import McpDoor
from cuepost.doors.mcp.gate import own_hosts
from cuepost.doors.media.app import media_routes
from cuepost.doors.rest.app import create_app, create_vital_signs
from cuepost.doors.rest.open_pages import HealthChecks
from cuepost.doors.web.app import create_pages
from cuepost.engine.housekeeping import Housekeeper, house_chores
from cuepost.ports.records import Page
from cuepost.ports.runtime import SecretBox
from cuepost.ports.store import Store
from cuepost.settings import Settings

BACKLOG = 2_048
GRACE_SECONDS = 10
ACCOUNTS_LOOKED_AT = 50
OBJECTS_BETWEEN_COLLECTIONS = 10_000

logger = logging.getLogger("cuepost")


class CannotListen(Exception):
    """The address to listen on is not to be had."""


class OneProcessOnly(Exception):
    """An embedded store has one process that sends, 'cuepost serve'; workers need PostgreSQL."""

    def __init__(self) -> None:
        super().__init__(type(self).__doc__)


class GracefulServer(uvicorn.Server):
    """Leaves signals to the event loop; uvicorn would end by the signal in the end, not with 0."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def stop(self) -> None:
        """The first time after the requests under way, the second time at once."""
        self.force_exit, self.should_exit = self.should_exit, True


async def serve(settings: Settings, greet: Work[None], *, sending: bool) -> None:
    """The API, and with `sending` the delivery as well."""
    with _plain_faults(), _listening(settings.host, settings.port, "CUEPOST_PORT") as listener:
        async with (
            _ready(settings) as (parts, metrics),
            _halves(parts, metrics, sending=sending) as delivery,
        ):
            tools, stopping = _mcp_door(parts), asyncio.Event()
            routes = _further_routes(parts, tools, stopping)
            server = _server(_api(parts, metrics, _health(parts, delivery), routes), metrics)
            stop = _stop_all(server, parts, stopping)
            with _stopped_by_signals(stop), showing_state(delivery):
                _spare_what_stays()
                await greet(Opened(parts.service, settings))
                async with _kept_house(parts), tools.running():
                    await server.serve(sockets=[listener])


async def work(settings: Settings, greet: Work[None]) -> None:
    """The delivery alone."""
    if settings.database_url.path is not None:
        raise OneProcessOnly
    with _plain_faults(), _listening_of_worker(settings) as listener:
        async with (
            _ready(settings) as (parts, metrics),
            delivering(parts, metrics.engine) as delivery,
            _kept_house(parts),
        ):
            stop = asyncio.Event()
            with _stopped_by_signals(stop.set), showing_state(delivery):
                _spare_what_stays()
                await greet(Opened(parts.service, settings))
                async with _shown(parts, metrics, delivery, listener):
                    await stop.wait()


@asynccontextmanager
async def _shown(
    parts: Parts, metrics: Metrics, delivery: Delivery, listener: socket.socket | None
) -> AsyncIterator[None]:
    """A worker's health and metrics, where somebody wants to see them."""
    if listener is None:
        yield
        return
    app = create_vital_signs(_health(parts, delivery), metrics.registry)
    server = _server(app, metrics)
    async with asyncio.TaskGroup() as group:
        group.create_task(server.serve(sockets=[listener]))
        yield
        server.stop()


@contextmanager
def _plain_faults() -> Iterator[None]:
    """One fault in groups of tasks comes out as itself, so that it can be told in a line."""
    try:
        yield
    except ExceptionGroup as group:
        fault: Exception = group
        while isinstance(fault, ExceptionGroup) and len(fault.exceptions) == 1:
            [fault] = fault.exceptions
        raise fault from None


@asynccontextmanager
async def _ready(settings: Settings) -> AsyncIterator[tuple[Parts, Metrics]]:
    async with running(settings) as parts:
        _warn_of_lonely_key(settings)
        await _require_fitting_key(parts.store, parts.ambient.box)
        yield parts, Metrics.of(parts)


@asynccontextmanager
async def _halves(
    parts: Parts, metrics: Metrics, *, sending: bool
) -> AsyncIterator[Delivery | None]:
    if sending:
        async with delivering(parts, metrics.engine) as delivery:
            yield delivery
    else:
        async with announcing(parts):
            yield None


@contextmanager
def _listening_of_worker(settings: Settings) -> Iterator[socket.socket | None]:
    if settings.worker_port is None:
        yield None
    else:
        with _listening(settings.host, settings.worker_port, "CUEPOST_WORKER_PORT") as listener:
            yield listener


@contextmanager
def _listening(host: str, port: int, setting: str) -> Iterator[socket.socket]:
    """Connections are taken from here on, and answered once the server runs."""
    where = f"{host} port {port}"
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        family, _, _, _, address = found[0]
        listener = socket.create_server((address[0], address[1]), family=family, backlog=BACKLOG)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise CannotListen(
                f"Something listens on {where} already; stop it, or set {setting}."
            ) from error
        raise CannotListen(f"Cannot listen on {where}: {error.strerror or error}.") from error
    with listener:
        yield listener


def _warn_of_lonely_key(settings: Settings) -> None:
    if settings.database_url.path is None and settings.master_key is None:
        logger.warning(
            "the master key is a file of this machine; if other processes use this database, "
            "give all of them the same CUEPOST_MASTER_KEY"
        )


async def _require_fitting_key(store: Store, box: SecretBox) -> None:
    """A wrong master key is found at the start, and not at the first delivery."""
    async with store.snapshot() as transaction:
        for account in (await transaction.accounts.all())[:ACCOUNTS_LOOKED_AT]:
            for endpoint in await transaction.endpoints.page(account.id, Page(limit=1)):
                found = await transaction.endpoints.secrets(account.id, [endpoint.id])
                for secret in found[endpoint.id]:
                    box.open(secret.sealed, endpoint.id.bytes)
                return


def _api(
    parts: Parts, metrics: Metrics, health: HealthChecks, further_routes: Sequence[BaseRoute]
) -> ASGIApp:
    base_url = parts.settings.base_url
    return create_app(
        parts.service,
        base_url=base_url,
        health=health,
        registry=metrics.registry,
        further_routes=further_routes,
    )


def _further_routes(parts: Parts, tools: McpDoor, stopping: asyncio.Event) -> Sequence[BaseRoute]:
    downloads = parts.service.downloads
    pages = create_pages(
        parts.service, base_url=parts.settings.base_url, is_stopping=stopping.is_set
    )
    return [*(media_routes(downloads) if downloads else ()), *tools.routes(), *pages]


def _mcp_door(parts: Parts) -> McpDoor:
    settings = parts.settings
    hosts = own_hosts(settings.base_url, settings.host, settings.port)
    return McpDoor(parts.service, settings.base_url, hosts)


def _health(parts: Parts, delivery: Delivery | None) -> HealthChecks:
    return HealthChecks(parts.store.check, delivery.readiness if delivery else None)


def _server(app: ASGIApp, metrics: Metrics) -> GracefulServer:
    return GracefulServer(
        uvicorn.Config(
            metrics.refreshed_in(app),
            loop="uvloop",
            http=LinedProtocol,
            ws="none",
            log_config=None,
            log_level="warning",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=True,
            backlog=BACKLOG,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
    )


def _stop_all(server: GracefulServer, parts: Parts, stopping: asyncio.Event) -> Callable[[], None]:
    """Whoever waits for events is answered at once, or the server would wait for them in turn."""

    def stop() -> None:
        stopping.set()
        parts.service.listeners.stop_waiting()
        server.stop()

    return stop


def _spare_what_stays() -> None:
    """The collector looks neither at what is here by now, nor after each few hundred new objects.

    It took a twentieth of the time of a busy service, and found next to nothing.
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
async def _kept_house(parts: Parts) -> AsyncIterator[None]:
    clock = parts.ambient.clock
    retention = timedelta(days=parts.settings.retention_days)
    chores = house_chores(parts.store, parts.service, clock, retention)
    async with asyncio.TaskGroup() as group:
        housekeeping = group.create_task(Housekeeper(clock, chores).run())
        yield
        housekeeping.cancel()
