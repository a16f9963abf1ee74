"""The entry point of `cuepost`; the only package that chooses and connects implementations."""

import os
import sys
from collections.abc import Sequence
from datetime import datetime
from functools import cached_property
from pathlib import Path

from cuepost.adapters.system_clock import SystemClock, system_entropy
from cuepost.bootstrap.mcp_client import speak_mcp
from cuepost.interfaces.cli import cli
from cuepost.interfaces.cli.runtime import Backup, CheckResult, Progress, Runtime, T, Work


class LazyRuntime:
    """Loads stores and servers only when they are needed, so that `--help` answers at once."""

    @cached_property
    def _runtime(self) -> Runtime:
        from cuepost.bootstrap.runtime import ServiceRuntime  # noqa: PLC0415  # loading it takes a while

        return ServiceRuntime(os.environ)

    def use(self, work: Work[T], *, migrating: bool = False) -> T:
        return self._runtime.use(work, migrating=migrating)

    def migrate(self, *, with_downtime: bool) -> None:
        self._runtime.migrate(with_downtime=with_downtime)

    def back_up(self, file: Path, progress: Progress) -> Backup:
        return self._runtime.back_up(file, progress)

    def serve(self, greet: Work[None], *, sending: bool) -> None:
        self._runtime.serve(greet, sending=sending)

    def work(self, greet: Work[None]) -> None:
        self._runtime.work(greet)

    def examine(self, *, offline: bool) -> Sequence[CheckResult]:
        return self._runtime.examine(offline=offline)

    def now(self) -> datetime:
        return SystemClock().now()

    def entropy(self, count: int) -> bytes:
        return system_entropy(count)

    def speak_mcp(self) -> None:
        speak_mcp(os.environ)


def use_bundled_kit() -> None:
    """A wheel contains the receiver kit of its version; in a checkout it is a separate package."""
    bundled = Path(__file__).parents[1] / "_bundled"
    if bundled.is_dir():
        sys.path.insert(0, str(bundled))


def main() -> None:
    use_bundled_kit()
    # Files that are written, such as the store, are readable by their owner only.
    os.umask(0o077)
    runtime: Runtime = LazyRuntime()
    cli.main(prog_name="cuepost", obj=runtime)
