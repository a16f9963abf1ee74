"""Shows the progress of downloads in a terminal."""

import sys
import time
from collections.abc import Callable
from typing import TextIO

Progress = Callable[[str, int, int], None]
"""Called with the name, the bytes done and the total bytes."""

PAUSE_SECONDS = 0.1
_UNITS = ("B", "kB", "MB", "GB", "TB")


def silent(_name: str, _done: int, _total: int) -> None:
    """For logs and pipes."""


class TerminalProgress:
    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._drawn_at = 0.0

    def __call__(self, name: str, done: int, total: int) -> None:
        ended = done >= total
        if not ended and time.monotonic() - self._drawn_at < PAUSE_SECONDS:
            return
        self._drawn_at = time.monotonic()
        share = 100 * done // total if total else 100
        line = f"\r{name}  {share:3d} %  {size(done)} of {size(total)}\x1b[K"
        self._stream.write(line + ("\n" if ended else ""))
        self._stream.flush()


def terminal_progress(stream: TextIO | None = None) -> Progress:
    """A progress line if the stream is a terminal, otherwise nothing."""
    chosen = stream or sys.stderr
    return TerminalProgress(chosen) if chosen.isatty() else silent


def size(count: float) -> str:
    for unit in _UNITS[:-1]:
        if count < 1_000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1_000
    return f"{count:.1f} {_UNITS[-1]}"
