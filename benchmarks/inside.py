"""For programs that run `cuepost` and observe it from inside, between two signals.

The first SIGUSR1 begins the observation. The second ends it and writes the result as JSON beside
the service's data folder, where `reported_by` reads it.
"""

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

OURS = "/src/cuepost/"
TIMEOUT_SECONDS = 60.0


def between_signals(begin: Callable[[], None], end: Callable[[], object]) -> None:
    """Runs in the service: calls `begin` and `end`, and writes what `end` returns."""

    def on_second(*_: object) -> None:
        signal.signal(signal.SIGUSR1, on_first)
        file = _file(Path(os.environ["CUEPOST_DATA_DIR"]).parent, os.getpid())
        part = file.with_suffix(".part")
        part.write_text(json.dumps(end()), encoding="utf-8")
        part.rename(file)

    def on_first(*_: object) -> None:
        signal.signal(signal.SIGUSR1, on_second)
        begin()

    signal.signal(signal.SIGUSR1, on_first)


def reported_by(pid: int, folder: Path) -> Any:
    """Runs outside of the service: ends the observation and reads its result."""
    os.kill(pid, signal.SIGUSR1)
    file = _file(folder, pid)
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not file.exists():
        assert time.monotonic() < deadline, "the service did not write its observations"
        time.sleep(0.05)
    reported = json.loads(file.read_text(encoding="utf-8"))
    file.unlink()
    return reported


def _file(folder: Path, pid: int) -> Path:
    return folder / f"inside-{pid}.json"
