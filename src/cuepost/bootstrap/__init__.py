"""The only place where concrete things meet, and the entry point of `cuepost`."""

import os
import sys
from collections.abc import Sequence
from datetime import datetime
from functools import cached_property
from pathlib import Path

from cuepost.adapters.system_clock import SystemClock, system_entropy
from cuepost.bootstrap.mcp_client import speak_mcp
from cuepost.doors.cli import cli
from cuepost.doors.cli.house import BackedUp, Finding, House, Progress, T, Work


class HouseOnDemand:
    """Help and completion answer at once, without loading stores and servers first."""

    @cached_property
    def _house(self) -> House:
        from cuepost.bootstrap.house import RealHouse  # noqa: PLC0415  # loading it takes a while

        return RealHouse(os.environ)

    def use(self, work: Work[T], *, migrating: bool = False) -> T:
        return self._house.use(work, migrating=migrating)

    def migrate(self) -> None:
        self._house.migrate()

    def back_up(self, file: Path, progress: Progress) -> BackedUp:
        return self._house.back_up(file, progress)

    def serve(self, greet: Work[None], *, sending: bool) -> None:
        self._house.serve(greet, sending=sending)

    def work(self, greet: Work[None]) -> None:
        self._house.work(greet)

    def examine(self, *, offline: bool) -> Sequence[Finding]:
        return self._house.examine(offline=offline)

    def now(self) -> datetime:
        return SystemClock().now()

    def entropy(self, count: int) -> bytes:
        return system_entropy(count)

    def speak_mcp(self) -> None:
        speak_mcp(os.environ)


def use_bundled_kit() -> None:
    """A wheel carries the receiver kit of its own version; in a checkout it is installed apart."""
    bundled = Path(__file__).parents[1] / "_bundled"
    if bundled.is_dir():
        sys.path.insert(0, str(bundled))


def main() -> None:
    use_bundled_kit()
    # Whatever is written, the store above all, is for its owner alone.
    os.umask(0o077)
    house: House = HouseOnDemand()
    cli.main(prog_name="cuepost", obj=house)
