"""The HTTP server of a process: its socket, its limits, and how it stops."""

import errno
import socket
from asyncio import Protocol
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import uvicorn
from starlette.types import ASGIApp

from cuepost.bootstrap.delivery import allow_many_connections
from cuepost.bootstrap.guarded_protocol import guarded_connections
from cuepost.bootstrap.inbound_guard import InboundGuard, InboundLimits
from cuepost.bootstrap.metrics import Metrics
from cuepost.settings import Settings

BACKLOG = 2_048
GRACE_SECONDS = 10
KEEP_ALIVE_SECONDS = 5
HSTS_SECONDS = 365 * 24 * 3_600


class CannotListen(Exception):
    """The service cannot listen on its address."""


class GracefulServer(uvicorn.Server):
    """Leaves signals to the event loop; uvicorn would exit by the signal instead of with 0."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def stop(self) -> None:
        """Stop after the current requests; a second call stops at once."""
        self.force_exit, self.should_exit = self.should_exit, True


@contextmanager
def listening(host: str, port: int, setting: str) -> Iterator[socket.socket]:
    """Connections are accepted from now on, and answered once the server runs."""
    where = f"{host} port {port}"
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        family, _, _, _, address = found[0]
        listener = socket.create_server((address[0], address[1]), family=family, backlog=BACKLOG)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise CannotListen(
                f"Port {port} on {host} is already in use; stop what uses it, or set {setting}."
            ) from error
        raise CannotListen(f"Cannot listen on {where}: {error.strerror or error}.") from error
    with listener:
        yield listener


def create_server(app: ASGIApp, metrics: Metrics, settings: Settings) -> GracefulServer:
    allow_many_connections()
    guard = InboundGuard(_limits(settings), metrics.inbound)
    return GracefulServer(
        uvicorn.Config(
            app,
            loop="uvloop",
            # Not a class, but uvicorn only needs a callable.
            http=cast("type[Protocol]", guarded_connections(guard)),
            ws="none",
            log_config=None,
            log_level="warning",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=True,
            headers=_default_headers(settings),
            backlog=BACKLOG,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
    )


def _default_headers(settings: Settings) -> list[tuple[str, str]]:
    """Browsers that have used https do not use http again."""
    is_https = settings.base_url.startswith("https://")
    return [("strict-transport-security", f"max-age={HSTS_SECONDS}")] if is_https else []


def _limits(settings: Settings) -> InboundLimits:
    return InboundLimits(
        request_line=settings.request_line_limit,
        header_count=settings.header_count_limit,
        header_bytes=settings.header_bytes_limit,
        head_seconds=settings.head_timeout,
        body_seconds=settings.body_timeout,
        answer_seconds=settings.answer_timeout,
        idle_seconds=KEEP_ALIVE_SECONDS,
        client_connections=settings.connections_per_client,
        connections=settings.connections,
        trusted_proxies=settings.trusted_proxies,
    )
