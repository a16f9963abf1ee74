"""When other virtual machines of the host used a core: such measurements are meaningless.

The kernel counts it as "steal", in hundredths of a second. Where it does not count steal, there is
none.
"""

import threading
import time
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_COUNTS = Path("/proc/stat")
_STEAL = 8
_LOOKS_APART_SECONDS = 0.02
# The counter increases only in whole ticks, so steal shows late.
_SHOWS_LATER_SECONDS = 0.1


class StolenTime:
    def __init__(self) -> None:
        self._noticed_at: list[float] = []

    def was_between(self, begin: float, end: float) -> bool:
        """Times are those of `time.time`."""
        noticed = self._noticed_at
        place = bisect_left(noticed, begin)
        return place < len(noticed) and noticed[place] <= end + _SHOWS_LATER_SECONDS

    def notice(self, at: float) -> None:
        self._noticed_at.append(at)


@contextmanager
def stolen_time() -> Iterator[StolenTime]:
    """Collects steal until the end of the block."""
    found, over = StolenTime(), threading.Event()

    def watch() -> None:
        before = _steal()
        while not over.wait(_LOOKS_APART_SECONDS):
            after = _steal()
            if after != before:
                found.notice(time.time())
            before = after

    watching = threading.Thread(target=watch, name="stolen time")
    watching.start()
    try:
        yield found
        # The last steal shows late as well.
        time.sleep(_SHOWS_LATER_SECONDS)
    finally:
        over.set()
        watching.join()


def _steal() -> int:
    if not _COUNTS.exists():
        return 0
    with _COUNTS.open() as counts:
        return int(counts.readline().split()[_STEAL])
