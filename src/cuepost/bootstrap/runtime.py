"""The runtime of the command line: opens stores and servers by the settings."""

import asyncio
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import uvloop

from cuepost.adapters.master_key_file import BadKeyFile
from cuepost.adapters.storage.pooler import WrongPooler
from cuepost.adapters.storage.schema import WrongSchema
from cuepost.adapters.storage.sqlite_backup import CannotBackUp, back_up
from cuepost.adapters.system_clock import SystemClock, system_entropy
from cuepost.bootstrap.container import MASTER_KEY_FILE, NoStore, opened_store, running
from cuepost.bootstrap.delivery import AlreadyServed
from cuepost.bootstrap.extras import MissingExtra
from cuepost.bootstrap.logs import logged
from cuepost.bootstrap.mcp_client import speak_mcp
from cuepost.bootstrap.server import OneProcessOnly, serve, work
from cuepost.bootstrap.web_server import CannotListen
from cuepost.interfaces.cli.runtime import (
    Backup,
    CannotRun,
    CheckResult,
    CommandContext,
    InvalidInput,
    Progress,
    Work,
)
from cuepost.ports.store import Contention, StoreUnavailable
from cuepost.ports.system import CannotOpen
from cuepost.settings import BadSettings, Settings, load

T = TypeVar("T")


NOT_EMBEDDED = (
    "This store is in PostgreSQL, which has a tool of its own: run pg_dump on the database "
    "that CUEPOST_DATABASE_URL names, and keep CUEPOST_MASTER_KEY with what it writes."
)
OPERATOR_ERRORS = (
    AlreadyServed,
    BadKeyFile,
    CannotBackUp,
    CannotListen,
    CannotOpen,
    MissingExtra,
    NoStore,
    OneProcessOnly,
    StoreUnavailable,
    WrongSchema,
)


@dataclass(frozen=True, slots=True)
class ServiceRuntime:
    """Opens what a command needs, by the settings in `environ`, and closes it."""

    environ: Mapping[str, str] = field(repr=False)

    def use(self, work: Work[T], *, migrating: bool = False) -> T:
        async def do() -> T:
            async with running(load(self.environ), migrating=migrating) as container:
                return await work(CommandContext(container.service, container.settings))

        return _run(do())

    def migrate(self, *, with_downtime: bool) -> None:
        async def do() -> None:
            async with opened_store(
                load(self.environ), SystemClock(), migrating=True, with_downtime=with_downtime
            ):
                pass

        _run(do())

    def back_up(self, file: Path, progress: Progress) -> Backup:
        async def do() -> Backup:
            settings = load(self.environ)
            store = settings.database_url.path
            if store is None:
                raise CannotRun(NOT_EMBEDDED)
            size = await back_up(store, file, SystemClock(), progress)
            key_file = None if settings.master_key else settings.data_dir / MASTER_KEY_FILE
            return Backup(file, size, key_file, settings.media_url)

        return _run(do())

    def serve(self, greet: Work[None], *, sending: bool) -> None:
        settings = self._settings()
        with logged(settings.log_level, settings.log_format):
            _run(serve(settings, greet, sending=sending))

    def examine(self, *, offline: bool) -> Sequence[CheckResult]:
        # It imports modules that nothing else needs.
        from cuepost.bootstrap.examination import examined  # noqa: PLC0415  # see above

        settings = self._settings()

        async def do() -> Sequence[CheckResult]:
            return [each async for each in examined(settings, self.environ, offline=offline)]

        return _run(do())

    def now(self) -> datetime:
        return SystemClock().now()

    def entropy(self, count: int) -> bytes:
        return system_entropy(count)

    def work(self, greet: Work[None]) -> None:
        settings = self._settings()
        with logged(settings.log_level, settings.log_format):
            _run(work(settings, greet))

    def speak_mcp(self) -> None:
        speak_mcp(self.environ)

    def _settings(self) -> Settings:
        with _errors_in_one_line():
            return load(self.environ)


def _run(work: Coroutine[Any, Any, T]) -> T:
    with _errors_in_one_line(), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


@contextmanager
def _errors_in_one_line() -> Iterator[None]:
    """Show errors that an operator can fix as one line; others are bugs, with a traceback."""
    try:
        yield
    except (BadSettings, WrongPooler) as error:
        raise InvalidInput(str(error)) from error
    except OPERATOR_ERRORS as error:
        raise CannotRun(" ".join(str(error).split())) from error
    except Contention as error:
        raise CannotRun(
            "Another process changed the same data at the same time; try again."
        ) from error
    except OSError as error:
        place = f" ({error.filename})" if error.filename else ""
        raise CannotRun(f"{error.strerror or error}{place}.") from error
