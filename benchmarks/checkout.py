"""A source tree whose services are measured: this one, or another one for comparison.

Services run as users run them: with default settings except those that a scenario sets, at the
default log level, and with the log in a file. Each tree fills and reads its store with its own
code, because two trees may have different schemas.
"""

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from benchmarks import store_access
from benchmarks.population import Populated
from tests.support.history_checker import StoredAttempt, StoredDelivery
from tests.support.service_process import ServiceProcess, command, default_environment

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ("src", ".", "packages/receiver/src")
KEPT_IN = ROOT / ".cache" / "checkouts"
TIMEOUT_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Checkout:
    """`name` identifies it in figures; usually its commit."""

    root: Path
    name: str

    def environment(self, settings: Mapping[str, str]) -> dict[str, str]:
        sources = os.pathsep.join(str(self.root / each) for each in SOURCES)
        return default_environment(settings) | {"PYTHONPATH": sources}

    def service(
        self, settings: Mapping[str, str], half: str, log: Path, *, module: str = "cuepost"
    ) -> ServiceProcess:
        started = command(half, module=module)
        return ServiceProcess.of_command(started, self.environment(settings), half, log)

    @contextmanager
    def store(self) -> Iterator["StoreAccess"]:
        """A process of this tree that fills and reads stores, and is idle in between."""
        process = subprocess.Popen(
            # Removes the folder of the script from the import path.
            [sys.executable, "-P", store_access.__file__],
            env=self.environment({}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        try:
            yield StoreAccess(process)
        finally:
            process.kill()
            process.communicate(timeout=TIMEOUT_SECONDS)


OURS = Checkout(ROOT, "this")


@dataclass(frozen=True, slots=True)
class StoreAccess:
    process: "subprocess.Popen[bytes]"

    def populate(
        self, settings: Mapping[str, str], urls: Mapping[str, str], projects: int
    ) -> Populated:
        return Populated(**self._asked("populate", dict(settings), dict(urls), projects))

    def wait_until_settled(self, settings: Mapping[str, str], accounts: Sequence[UUID]) -> None:
        self._asked("wait_until_settled", dict(settings), list(accounts))

    def stored_since(
        self, settings: Mapping[str, str], accounts: Sequence[UUID], since: float
    ) -> list[StoredDelivery]:
        found = self._asked("stored_since", dict(settings), list(accounts), since)
        return [
            StoredDelivery(**each | {"attempts": tuple(StoredAttempt(**a) for a in attempts)})
            for each in found
            for attempts in [each["attempts"]]
        ]

    def _asked(self, question: str, *arguments: object) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        pickle.dump((question, arguments), self.process.stdin)
        self.process.stdin.flush()
        try:
            return pickle.load(self.process.stdout)
        except EOFError:
            raise AssertionError(f"{question} failed; it says why above") from None


def other(place: str) -> Checkout:
    """A folder with a checkout, or a commit of this repository, which is extracted to `.cache`."""
    folder = Path(place)
    if folder.is_dir():
        has_commit = (folder / ".git").exists()
        name = _git(folder, "rev-parse", "--short=7", "HEAD") if has_commit else folder.name
        return Checkout(folder.resolve(), name)
    commit = _git(ROOT, "rev-parse", "--short=7", f"{place}^{{commit}}")
    unpacked = KEPT_IN / commit
    if not unpacked.exists():
        part = unpacked.with_suffix(".part")
        part.mkdir(parents=True, exist_ok=True)
        archive = ["git", "archive", "--output", str(part / "all.tar"), commit]
        subprocess.run(archive, cwd=ROOT, check=True)
        subprocess.run(["tar", "-xf", "all.tar"], cwd=part, check=True)
        part.rename(unpacked)
    return Checkout(unpacked, commit)


def commit() -> str:
    """The commit of this checkout, and whether its code has uncommitted changes."""
    changed = _git(ROOT, "status", "--porcelain", "--", "src", "benchmarks")
    return _git(ROOT, "rev-parse", "--short=7", "HEAD") + (" with changes" if changed else "")


def _git(folder: Path, *arguments: str) -> str:
    reported = subprocess.run(
        ["git", *arguments], cwd=folder, check=True, capture_output=True, text=True
    )
    return reported.stdout.strip()
