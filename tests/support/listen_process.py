"""`cuepost listen` as a real process, started and ended over and over."""

import json
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.support.service_process import PATIENCE_SECONDS, environment, start


class ListenProcess:
    """What all of them print goes into one file, behind one another."""

    def __init__(self, service: str, key: str, target: str, folder: Path) -> None:
        self._target = target
        self._output = folder / "listen.jsonl"
        self._errors = folder / "listen.err"
        self._environment: Mapping[str, str] = environment({"URL": service, "API_KEY": key}) | {
            "XDG_STATE_HOME": str(folder / "state"),
            "PYTHONUNBUFFERED": "1",
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._output.open("ab") as output, self._errors.open("ab") as errors:
            reported = ("listen", self._target, "--json")
            self._process = start(self._environment, *reported, stdout=output, stderr=errors)

    def end(self, number: int = signal.SIGTERM) -> int:
        """The exit code."""
        assert self._process is not None
        self._process.send_signal(number)
        return self._process.wait(PATIENCE_SECONDS)

    def wait_until(self, condition: Callable[[], bool]) -> None:
        deadline, pause = time.monotonic() + PATIENCE_SECONDS, threading.Event()
        while not condition():
            assert time.monotonic() < deadline, self.complaints
            pause.wait(0.05)

    def send_signal(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def complaints(self) -> str:
        return self._errors.read_text()

    def lines(self, kind: str) -> list[dict[str, Any]]:
        """Whole lines alone: one that was killed may have left a part of its last."""
        found = []
        for line in self._output.read_bytes().split(b"\n"):
            try:
                reported = json.loads(line)
            except ValueError:
                continue
            if reported["kind"] == kind:
                found.append(reported)
        return found
