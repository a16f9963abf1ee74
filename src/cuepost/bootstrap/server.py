"""Serves: a socket, the web application and the housekeeping, until a signal says stop."""

import asyncio
import errno
import logging
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import uvicorn

from cuepost.bootstrap.parts import Parts, running
from cuepost.doors.cli.house import Opened, Work
from cuepost.doors.rest.app import create_app
from cuepost.doors.rest.open_pages import HealthChecks
from cuepost.engine.housekeeping import Housekeeper, house_chores
from cuepost.ports.records import Page
from cuepost.ports.runtime import SecretBox
from cuepost.ports.store import Store
from cuepost.settings import Settings

BACKLOG = 2_048
GRACE_SECONDS = 10
ACCOUNTS_LOOKED_AT = 50

logger = logging.getLogger("cuepost")


class CannotListen(Exception):
    """The address to listen on is not to be had."""


class GracefulServer(uvicorn.Server):
    """Leaves signals to the event loop; uvicorn would end by the signal in the end, not with 0."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def stop(self) -> None:
        """The first time after the requests under way, the second time at once."""
        self.force_exit, self.should_exit = self.should_exit, True


async def serve(settings: Settings, greet: Work[None]) -> None:
    with _listening(settings) as listener:
        async with running(settings) as parts:
            _warn_of_lonely_key(settings)
            await _require_fitting_key(parts.store, parts.ambient.box)
            server = _server(parts)
            with _stopped_by_signals(server):
                await greet(Opened(parts.service, settings))
                await _serve_and_keep_house(server, listener, parts)


@contextmanager
def _listening(settings: Settings) -> Iterator[socket.socket]:
    """Connections are taken from here on, and answered once the server runs."""
    where = f"{settings.host} port {settings.port}"
    try:
        found = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)
        family, _, _, _, address = found[0]
        listener = socket.create_server((address[0], address[1]), family=family, backlog=BACKLOG)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise CannotListen(
                f"Something listens on {where} already; stop it, or set CUEPOST_PORT."
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


def _server(parts: Parts) -> GracefulServer:
    app = create_app(
        parts.service,
        base_url=parts.settings.base_url,
        health=HealthChecks(parts.store.check),
    )
    return GracefulServer(
        uvicorn.Config(
            app,
            loop="uvloop",
            http="httptools",
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


@contextmanager
def _stopped_by_signals(server: GracefulServer) -> Iterator[None]:
    loop, signals = asyncio.get_running_loop(), (signal.SIGINT, signal.SIGTERM)
    for each in signals:
        loop.add_signal_handler(each, server.stop)
    try:
        yield
    finally:
        for each in signals:
            loop.remove_signal_handler(each)


async def _serve_and_keep_house(
    server: GracefulServer, listener: socket.socket, parts: Parts
) -> None:
    clock = parts.ambient.clock
    retention = timedelta(days=parts.settings.retention_days)
    chores = house_chores(parts.store, parts.service, clock, retention)
    async with asyncio.TaskGroup() as group:
        housekeeping = group.create_task(Housekeeper(clock, chores).run())
        await server.serve(sockets=[listener])
        housekeeping.cancel()
