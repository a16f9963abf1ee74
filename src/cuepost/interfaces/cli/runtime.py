"""The runtime that commands need; bootstrap builds it and passes it in."""

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
from cuepost.domain.access import OPERATOR_SCOPES, Caller, Interface
from cuepost.domain.errors import AccountMoved, AccountMoving, Conflict, Invalid, NotFound
from cuepost.settings import Settings

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CommandContext:
    """The use cases on an open store, and the settings."""

    service: Service
    settings: Settings


Work = Callable[[CommandContext], Awaitable[T]]
# Called with the amount that is done, and the total.
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Backup:
    """A copy of the store, and what has to be backed up with it.

    `master_key_file` is None if the key is a setting.
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
class CheckResult:
    """The result of one check of `cuepost doctor`; `fix` says how to fix a problem."""

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


def fine(check: str, sentence: str) -> CheckResult:
    return CheckResult(check, Level.OK, sentence)


def warning(check: str, sentence: str, fix: str) -> CheckResult:
    return CheckResult(check, Level.WARNING, sentence, fix)


def failure(check: str, sentence: str, fix: str) -> CheckResult:
    return CheckResult(check, Level.FAILURE, sentence, fix)


class Runtime(Protocol):
    """Methods raise CannotRun on failure, with a message of one line."""

    def use(self, work: Work[T], *, migrating: bool = False) -> T:
        """Open the store, run `work`, close the store; `migrating` upgrades the schema first."""
        ...

    def migrate(self, *, with_downtime: bool) -> None:
        """Refused without `with_downtime` if processes of the previous version could not go on."""
        ...

    def back_up(self, file: Path, progress: Progress) -> Backup:
        """Copy the embedded store to a new file, also while a service writes to it."""
        ...

    def serve(self, greet: Work[None], *, sending: bool) -> None:
        """Serve until SIGTERM or SIGINT; calls `greet` once connections are accepted."""
        ...

    def work(self, greet: Work[None]) -> None:
        """Deliver until SIGTERM or SIGINT."""
        ...

    def examine(self, *, offline: bool) -> Sequence[CheckResult]:
        """Check everything that the service needs; changes nothing."""
        ...

    def now(self) -> datetime: ...

    def entropy(self, count: int) -> bytes:
        """Cryptographically secure random bytes."""
        ...

    def speak_mcp(self) -> None:
        """Proxy MCP between standard input and output and a running service."""
        ...


class CannotRun(click.ClickException):
    """The command is valid but failed; exit code 1."""


class InvalidInput(CannotRun):
    """An argument or a setting is invalid; exit code 2."""

    exit_code = 2


def use(work: Work[T], *, missing: str = "", migrating: bool = False) -> T:
    """Run `work` in the runtime of the command; `missing` is the message for an unknown id."""
    runtime: Runtime = click.get_current_context().obj
    try:
        return runtime.use(work, migrating=migrating)
    except NotFound as error:
        raise CannotRun(missing or str(error)) from error
    except Invalid as error:
        raise InvalidInput(str(error)) from error
    except (AccountMoving, AccountMoved, Conflict) as error:
        raise CannotRun(str(error)) from error


def operator() -> Caller:
    """The caller of every command; the audit trail records the login name."""
    try:
        login = getpass.getuser()
    except (KeyError, OSError):
        login = f"uid {os.getuid()}"
    return Caller(Interface.CLI, f"operator:{login}", None, OPERATOR_SCOPES)
