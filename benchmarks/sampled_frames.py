"""Runs `cuepost` and samples the Python code of its main thread, by CPU time.

The kernel sends a signal for every few milliseconds of CPU of the main thread. Python handles it
before its next instruction, so time in C code counts for the Python code that called it.
"""

import ctypes
import signal
from collections import Counter
from collections.abc import Mapping
from types import CodeType, FrameType

from benchmarks.inside import OURS, between_signals
from cuepost.bootstrap import main

THREAD_CPU_CLOCK = 3
INTERVAL_NANOSECONDS = 1_000_000
STARTERS = ("bootstrap/", "interfaces/cli/", "__main__")


class _Moment(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _Times(ctypes.Structure):
    _fields_ = (("interval", _Moment), ("value", _Moment))


class _Event(ctypes.Structure):
    _fields_ = (
        ("value", ctypes.c_void_p),
        ("signal", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("padding", ctypes.c_char * 48),
    )


class Frames:
    """Counts the innermost frame of our code, or of other code if there is none of ours."""

    def __init__(self) -> None:
        self._counts: Counter[CodeType] = Counter()

    def note(self, _: int, frame: FrameType | None) -> None:
        innermost = frame
        while frame is not None and not _is_ours(frame.f_code.co_filename):
            frame = frame.f_back
        chosen = frame or innermost
        if chosen is not None:
            self._counts[chosen.f_code] += 1

    def begin(self) -> None:
        signal.signal(signal.SIGPROF, self.note)
        _start_timer()

    def end(self) -> Mapping[str, int]:
        """Samples by file."""
        signal.signal(signal.SIGPROF, signal.SIG_IGN)
        found: Counter[str] = Counter()
        for code, count in self._counts.items():
            found[code.co_filename] += count
        return found


def _is_ours(file: str) -> bool:
    """Start-up code is at the bottom of every stack, so it is ignored."""
    _, ours, place = file.rpartition(OURS)
    return bool(ours) and not place.startswith(STARTERS)


def _start_timer() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    timer, event = ctypes.c_void_p(), _Event(signal=signal.SIGPROF)
    each = _Moment(0, INTERVAL_NANOSECONDS)
    if libc.timer_create(THREAD_CPU_CLOCK, ctypes.byref(event), ctypes.byref(timer)):
        raise OSError(ctypes.get_errno(), "timer_create")
    if libc.timer_settime(timer, 0, ctypes.byref(_Times(each, each)), None):
        raise OSError(ctypes.get_errno(), "timer_settime")


def layer_of(file: str) -> str:
    """Our folder, with a subfolder if the first is large; or the library."""
    _, ours, place = file.rpartition(OURS)
    if ours:
        parts = place.removesuffix(".py").split("/")
        return "/".join(parts[: 2 if parts[0] in {"adapters", "interfaces"} else 1])
    _, installed, place = file.rpartition("/site-packages/")
    if installed:
        return place.partition("/")[0].removesuffix(".py")
    return "standard library"


if __name__ == "__main__":
    frames = Frames()
    between_signals(frames.begin, frames.end)
    main()
