"""When others on the same host took a core away: what was measured just then says nothing of us.

The kernel counts it as "steal", in hundredths of a second. Where it does not count, nothing is
ever said to be stolen.
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
# It is counted only once it adds up, so that it shows late.
_SHOWS_LATER_SECONDS = 0.1


class StolenTime:
    def __init__(self) -> None:
        self._noticed_at: list[float] = []

    def was_between(self, begin: float, end: float) -> bool:
        """Instants of `time.time`."""
        noticed = self._noticed_at
        place = bisect_left(noticed, begin)
        return place < len(noticed) and noticed[place] <= end + _SHOWS_LATER_SECONDS

    def notice(self, at: float) -> None:
        self._noticed_at.append(at)


@contextmanager
def stolen_time() -> Iterator[StolenTime]:
    """As it is noticed until the block is left."""
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
        # The last of it shows late as well.
        time.sleep(_SHOWS_LATER_SECONDS)
    finally:
        over.set()
        watching.join()


def _steal() -> int:
    if not _COUNTS.exists():
        return 0
    with _COUNTS.open() as counts:
        return int(counts.readline().split()[_STEAL])
