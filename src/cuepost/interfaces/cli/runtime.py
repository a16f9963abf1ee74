"""What the commands need of the runtime around them; bootstrap builds it and hands it in."""

import getpass
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Protocol, TypeVar

import click

from cuepost.application.service import Service
from cuepost.domain.access import Caller, Interface
from cuepost.domain.errors import AccountMoved, AccountMoving, Invalid, MoveRefused, NotFound
from cuepost.settings import Settings

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Opened:
    """The use cases over an open store, and the settings that they follow."""

    service: Service
    settings: Settings


Work = Callable[[Opened], Awaitable[T]]
# Told how much is done, of how much.
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class BackedUp:
    """A copy of the store, and what has to be kept beside it.

    `master_key_file` is None where the key is a setting.
    """

    file: Path
    size_bytes: int
    master_key_file: Path | None
    media_url: str


class Level(StrEnum):
    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"


@dataclass(frozen=True, slots=True)
class Finding:
    """What `cuepost doctor` has found; `fix` says what to do about it."""

    check: str
    level: Level
    sentence: str
    fix: str = ""

    def as_json(self) -> dict[str, str]:
        return {
            "check": self.check,
            "level": self.level.value,
            "sentence": self.sentence,
            "fix": self.fix,
        }


def fine(check: str, sentence: str) -> Finding:
    return Finding(check, Level.OK, sentence)


def warning(check: str, sentence: str, fix: str) -> Finding:
    return Finding(check, Level.WARNING, sentence, fix)


def failure(check: str, sentence: str, fix: str) -> Finding:
    return Finding(check, Level.FAILURE, sentence, fix)


class Runtime(Protocol):
    """Each method raises CannotRun when it cannot be done, with one line that says why."""

    def use(self, work: Work[T], *, migrating: bool = False) -> T:
        """Open the store, do the work, close it again; `migrating` makes the schema current."""
        ...

    def migrate(self, *, with_downtime: bool) -> None:
        """Without `with_downtime` only where processes of the version before can go on."""
        ...

    def back_up(self, file: Path, progress: Progress) -> BackedUp:
        """Copy the embedded store to a new file, whoever writes to it meanwhile."""
        ...

    def serve(self, greet: Work[None], *, sending: bool) -> None:
        """Serve until a signal says stop; `greet` is called once connections are accepted."""
        ...

    def work(self, greet: Work[None]) -> None:
        """Deliver until a signal says stop."""
        ...

    def examine(self, *, offline: bool) -> Sequence[Finding]:
        """Look at everything that the service needs, and change nothing."""
        ...

    def now(self) -> datetime: ...

    def entropy(self, count: int) -> bytes:
        """Bytes that nobody can guess."""
        ...

    def speak_mcp(self) -> None:
        """Pass MCP on between standard input and output and a running service."""
        ...


class CannotRun(click.ClickException):
    """The command was understood and cannot be done; exit code 1."""


class Unusable(CannotRun):
    """What was typed or set cannot be used; exit code 2."""

    exit_code = 2


def use(work: Work[T], *, missing: str = "", migrating: bool = False) -> T:
    """Do the work in the runtime of the running command; `missing` is said of an unknown id."""
    runtime: Runtime = click.get_current_context().obj
    try:
        return runtime.use(work, migrating=migrating)
    except NotFound as error:
        raise CannotRun(missing or str(error)) from error
    except Invalid as error:
        raise Unusable(str(error)) from error
    except (AccountMoving, AccountMoved, MoveRefused) as error:
        raise CannotRun(str(error)) from error


def operator() -> Caller:
    """Whoever can start the command is an operator; the audit trail keeps the login name."""
    try:
        login = getpass.getuser()
    except (KeyError, OSError):
        login = f"uid {os.getuid()}"
    return Caller(Interface.CLI, f"operator:{login}", None, frozenset())
