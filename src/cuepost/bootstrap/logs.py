"""The log of a process: lines on standard error; lines at `info` are written in groups."""

import logging
import math
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from cuepost.adapters.system_clock import SystemClock
from cuepost.bootstrap.log_folding import Folding
from cuepost.bootstrap.log_formats import JsonLines, TerminalLines
from cuepost.log_lines import REQUEST_ID

LONGEST_WAIT_SECONDS = 0.1
REPEATED_CHECK_SECONDS = 1.0
LARGEST_GROUP = 64 * 1024
FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


@contextmanager
def logged(level: str, form: str = "text") -> Iterator[None]:
    """Log cuepost's own lines from this level on, and warnings of libraries.

    All lines are written by the end of the block, also if it raises.
    """
    _record_only_what_is_shown()
    handler, root = GroupedLines(sys.stderr, form), logging.getLogger()
    root.addHandler(handler)
    try:
        logging.getLogger("cuepost").setLevel(level)
        yield
    finally:
        root.removeHandler(handler)
        handler.close()


class GroupedLines(logging.Handler):
    """Buffers lines for a moment, to write many at once.

    A line from `warning` on is written at once, after the buffered ones, unless it repeats one. The
    others wait for 64 KiB or 100 ms. A separate thread writes them, so that they also appear while
    the event loop is blocked.
    """

    def __init__(self, stream: TextIO, form: str = "text") -> None:
        super().__init__()
        self.setFormatter(formatter_of(form, stream))
        self._stream = stream
        self._lines: list[str] = []
        self._size = 0
        self._folding = Folding()
        self._begun, self._ended = threading.Event(), threading.Event()
        threading.Thread(target=self._write_groups, name="log", daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        is_urgent = record.levelno >= logging.WARNING
        try:
            if is_urgent and self._folding.holds_back(record):
                return
            line = self.format(record)
        except Exception:  # noqa: BLE001  # as every handler: reported, not raised
            self.handleError(record)
            return
        self._lines.append(line)
        self._size += len(line)
        if is_urgent or self._size >= LARGEST_GROUP:
            self.flush()
        if not self._begun.is_set():
            self._begun.set()

    def flush(self) -> None:
        self.acquire()
        try:
            if self._lines:
                text = "\n".join(self._lines) + "\n"
                self._lines.clear()
                self._size = 0
                # A log that cannot be written must not stop the service.
                with suppress(OSError, ValueError):
                    self._stream.write(text)
                    self._stream.flush()
        finally:
            self.release()

    def close(self) -> None:
        self._ended.set()
        self._begun.set()
        # The thread is not joined, because `logging` holds the lock while it closes handlers.
        self._write_repeated(math.inf)
        super().close()

    def _write_repeated(self, now: float) -> None:
        self.acquire()
        try:
            self._lines += map(self.format, self._folding.due(now))
            self.flush()
        finally:
            self.release()

    def _write_groups(self) -> None:
        clock = SystemClock()
        while not self._ended.is_set():
            self._begun.wait(None if self._folding.is_idle else REPEATED_CHECK_SECONDS)
            self._ended.wait(LONGEST_WAIT_SECONDS)
            self._begun.clear()
            self._write_repeated(clock.now().timestamp())


def formatter_of(form: str, stream: TextIO) -> logging.Formatter:
    """`form` is `text` or `json`."""
    if form == "json":
        return JsonLines()
    return TerminalLines() if stream.isatty() else QuickFormatter(FORMAT)


class QuickFormatter(logging.Formatter):
    """The same text as the base class, but date and time are formatted once a second.

    Each line of a message has its own prefix, so that a message cannot imitate another line.
    """

    _second = -1
    _text = ""

    def format(self, record: logging.LogRecord) -> str:
        second, request_id = int(record.created), REQUEST_ID.get()
        if second != self._second:
            self._second = second
            self._text = time.strftime(self.default_time_format, time.localtime(second))
        beginning = f"{self._text},{int(record.msecs):03d} {record.levelname} {record.name}: "
        named = f"request={request_id}" if request_id else ""
        if record.exc_info or record.exc_text or record.stack_info:
            return super().format(record) + (f"\n{beginning}{named}" if named else "")
        message = record.getMessage() + (f" {named}" if named else "")
        return beginning + message.replace("\n", f"\n{beginning}")


def _record_only_what_is_shown() -> None:
    """Turn off what lines do not show (source line, thread), as the docs of `logging` advise."""
    logging._srcfile = None  # noqa: SLF001  # documented in spite of its name
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    if hasattr(logging, "logAsyncioTasks"):
        logging.logAsyncioTasks = False
