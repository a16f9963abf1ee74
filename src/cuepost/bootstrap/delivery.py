"""Builds the delivery engine and runs it beside the other work of a process."""

import asyncio
import fcntl
import os
import resource
from collections.abc import AsyncIterator, Iterator
from contextlib import (
    AbstractContextManager,
    ExitStack,
    asynccontextmanager,
    contextmanager,
    nullcontext,
)
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from pathlib import Path

from cuepost import __version__, tuning
from cuepost.adapters.guarded_transport import GuardedTransport, tls_context
from cuepost.adapters.storage.sqlite import SqliteStore
from cuepost.adapters.system_clock import system_jitter
from cuepost.adapters.system_resolver import SystemResolver
from cuepost.adapters.telemetry import EngineTelemetry
from cuepost.bootstrap.container import Container
from cuepost.bootstrap.extras import require
from cuepost.domain.retry_schedule import RetrySchedule
from cuepost.engine.attempt_pipeline import AttemptPipeline
from cuepost.engine.dispatcher import Dispatcher
from cuepost.engine.inbox_transport import InboxTransport
from cuepost.engine.lane_board import Capacity
from cuepost.engine.shared_dispatcher import SharedDispatcher
from cuepost.engine.watchdog import Watchdog
from cuepost.ports.telemetry import Telemetry


class AlreadyServed(Exception):
    """Another process already sends from this embedded store; only one can at a time."""

    def __init__(self) -> None:
        super().__init__(type(self).__doc__)


@dataclass(frozen=True, slots=True)
class Delivery:
    """The dispatcher of this process and its watchdog."""

    dispatcher: Dispatcher
    watchdog: Watchdog

    def readiness(self) -> str:
        if not self.dispatcher.running:
            return "stopped"
        return f"stalled: {self.watchdog.stalled}" if self.watchdog.stalled else "ok"


@asynccontextmanager
async def announcing(container: Container) -> AsyncIterator[None]:
    """For a process that only accepts requests: it wakes the workers of new work."""
    if isinstance(container.store, SqliteStore):
        yield
        return
    from cuepost.bootstrap.on_postgres import announce  # noqa: PLC0415  # as in container.py

    async with asyncio.TaskGroup() as group:
        announcing_task = announce(container, group)
        yield
        announcing_task.cancel()


@asynccontextmanager
async def delivering(container: Container, telemetry: EngineTelemetry) -> AsyncIterator[Delivery]:
    """Runs a dispatcher during the block; at its end waits for the attempts in flight."""
    tuning.check()
    with _alone_on_this_machine(container), ExitStack() as running:
        allow_many_connections()
        transport = _transport(container, telemetry)
        spans = running.enter_context(_traced(container, telemetry))
        dispatcher = _dispatcher(container, transport, spans)
        watchdog = Watchdog(dispatcher, container.store, container.system.clock, spans)
        telemetry.watch(
            in_flight=lambda: dispatcher.board.in_flight,
            held=lambda: dispatcher.board.load,
            stalled=lambda: watchdog.stalled is not None,
            clock_ahead=lambda: dispatcher.lease.clock_ahead / timedelta(seconds=1),
        )
        await _take_over(container)
        try:
            async with asyncio.TaskGroup() as group:
                listening = _listen(container, dispatcher, group)
                sending = group.create_task(dispatcher.run())
                watching = group.create_task(watchdog.run())
                yield Delivery(dispatcher, watchdog)
                watching.cancel()
                dispatcher.stop()
                await sending
                if listening is not None:
                    listening.cancel()
        finally:
            transport.close()


def _traced(container: Container, telemetry: Telemetry) -> AbstractContextManager[Telemetry]:
    if not container.settings.traces:
        return nullcontext(telemetry)
    require("otel", "CUEPOST_TRACES is true")
    tracing = import_module("cuepost.adapters.tracing")
    made: AbstractContextManager[Telemetry] = tracing.traced(telemetry)
    return made


def _listen(
    container: Container, dispatcher: Dispatcher, group: asyncio.TaskGroup
) -> "asyncio.Task[None] | None":
    if isinstance(container.store, SqliteStore):
        container.store.handover = dispatcher
        return None
    assert isinstance(dispatcher, SharedDispatcher)
    from cuepost.bootstrap.on_postgres import listen  # noqa: PLC0415  # as in container.py

    return listen(container, dispatcher, group)


async def _take_over(container: Container) -> None:
    """Deliveries that the last process of an embedded store left in flight are due again."""
    if isinstance(container.store, SqliteStore):
        async with container.store.transaction() as transaction:
            await transaction.queue.remove_all_workers()


def _dispatcher(
    container: Container, transport: GuardedTransport, telemetry: Telemetry
) -> Dispatcher:
    settings, system = container.settings, container.system
    pipeline = AttemptPipeline(
        clock=system.clock,
        box=system.box,
        policy=container.rules.policy,
        transport=InboxTransport(
            transport, container.service.inbox, container.service.perform, system.clock
        ),
        schedule=RetrySchedule(tuple(timedelta(seconds=pause) for pause in settings.retry_delays)),
        jitter=system_jitter,
        timeout=timedelta(seconds=settings.attempt_timeout),
        user_agent=f"cuepost/{__version__}",
    )
    kind = Dispatcher if isinstance(container.store, SqliteStore) else SharedDispatcher
    return kind(
        container.store,
        pipeline,
        system.clock,
        system.ids,
        capacity=Capacity(settings.worker_concurrency, settings.endpoint_concurrency),
        telemetry=telemetry,
    )


def _transport(container: Container, telemetry: EngineTelemetry) -> GuardedTransport:
    authorities = container.settings.extra_ca_file
    context = tls_context(str(authorities) if authorities else None)
    return GuardedTransport(
        container.rules.policy,
        SystemResolver(),
        context,
        most_idle=container.settings.worker_concurrency,
        on_unusable=telemetry.unusable,
    )


def allow_many_connections() -> None:
    """Raise the limit of open files: each attempt and each client needs a connection."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


@contextmanager
def _alone_on_this_machine(container: Container) -> Iterator[None]:
    """On an embedded store a second sender would send the deliveries of the first again."""
    path = container.settings.database_url.path
    if path is None:
        yield
        return
    with _locked(path.with_name(path.name + ".sender")):
        yield


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise AlreadyServed from None
    finally:
        os.close(descriptor)
