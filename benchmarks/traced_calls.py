"""Runs `cuepost` and records which of its functions are called, in order and in all threads."""

import sys
import threading
import time
from types import FrameType

from benchmarks.inside import OURS, between_signals
from cuepost.bootstrap import main

# Parts of the surrounding function; later versions of Python have no code objects for them.
NO_FUNCTIONS = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>", "<module>"})


class Calls:
    """When each function was called first, by file and name."""

    def __init__(self) -> None:
        self._first: dict[tuple[str, str], float] = {}
        self._notes = False

    def note(self, frame: FrameType, event: str, _: object) -> None:
        if not self._notes or event != "call":
            return
        code = frame.f_code
        _, ours, place = code.co_filename.rpartition(OURS)
        if ours and code.co_name not in NO_FUNCTIONS:
            self._first.setdefault((place, code.co_qualname), time.time())

    def begin(self) -> None:
        self._first.clear()
        self._notes = True

    def end(self) -> list[tuple[float, str, str]]:
        self._notes = False
        return [(at, file, name) for (file, name), at in self._first.items()]


if __name__ == "__main__":
    calls = Calls()
    between_signals(calls.begin, calls.end)
    # Set at the start, because it does not apply to threads that are already running.
    threading.setprofile(calls.note)
    sys.setprofile(calls.note)
    main()
