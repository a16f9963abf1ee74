"""`cuepost` as a real process: what it prints, how it ends, and where it listens."""

import os
import select
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

from tests.support.quick_start import QuickStart

PATIENCE_SECONDS = 120.0


def environment(settings: Mapping[str, str]) -> dict[str, str]:
    """For tests: with these settings of cuepost, and a log that tells only of trouble."""
    return default_environment({"LOG_LEVEL": "warning", **settings})


def default_environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Whatever is not among these settings of cuepost has its default."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CUEPOST_")}
    return kept | {f"CUEPOST_{name}": value for name, value in settings.items()}


def command(*arguments: str, module: str = "cuepost") -> list[str]:
    return [sys.executable, "-m", module, *arguments]


def start(
    environ: Mapping[str, str],
    *arguments: str,
    fresh: bool = False,
    stdin: int = subprocess.DEVNULL,
    stdout: int | IO[Any] = subprocess.PIPE,
    stderr: int | IO[Any] | None = None,
    text: bool = False,
) -> "subprocess.Popen[Any]":
    """`fresh` ones have an interpreter of their own, for tests of how it is loaded and ends."""
    if fresh or sys.platform != "linux":
        return subprocess.Popen(
            command(*arguments), env=environ, stdin=stdin, stdout=stdout, stderr=stderr, text=text
        )
    return QuickStart(arguments, env=environ, stdin=stdin, stdout=stdout, stderr=stderr, text=text)


def run(settings: Mapping[str, str], *arguments: str) -> "subprocess.CompletedProcess[str]":
    """A command that ends by itself."""
    return run_in(environment(settings), *arguments)


def run_in(environ: Mapping[str, str], *arguments: str) -> "subprocess.CompletedProcess[str]":
    with start(environ, *arguments, stderr=subprocess.PIPE, text=True) as process:
        try:
            reported, complaints = process.communicate(timeout=PATIENCE_SECONDS)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(arguments, process.returncode, reported, complaints)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass(frozen=True, slots=True)
class Ended:
    code: int
    stderr: str


class ServiceProcess:
    """`cuepost serve`, `api` or `worker`, from its greeting to its end."""

    def __init__(
        self, settings: Mapping[str, str], half: str = "serve", *, fresh: bool = False
    ) -> None:
        # Not a pipe: one that no one reads would hold up a process that has much to say.
        log = tempfile.TemporaryFile()  # noqa: SIM115  # it lives as long as this object
        self._watch(start(environment(settings), half, fresh=fresh, stderr=log), half, log)

    @classmethod
    def of_command(
        cls, command: Sequence[str], environ: Mapping[str, str], half: str, log: Path
    ) -> Self:
        """A process of its own interpreter, with an environment and a log file as an operator
        would choose them."""
        self = cls.__new__(cls)
        file = log.open("w+b")
        process = subprocess.Popen(
            command, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=file
        )
        self._watch(process, half, file)
        return self

    def _watch(self, process: "subprocess.Popen[Any]", half: str, log: IO[bytes]) -> None:
        self.half = half
        self._process = process
        self._stderr = log
        try:
            self.greeting = self._read_greeting()
        except BaseException:
            self.kill()
            self._stderr.close()
            raise

    def stop(self) -> Ended:
        """SIGTERM, and how the process ended."""
        self._process.terminate()
        return self.wait()

    def wait(self) -> Ended:
        self._process.communicate(timeout=PATIENCE_SECONDS)
        return Ended(self._process.returncode, self.said)

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate(timeout=PATIENCE_SECONDS)

    def send_signal(self, number: int) -> None:
        self._process.send_signal(number)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def said(self) -> str:
        """On standard error, up to now."""
        size = os.fstat(self._stderr.fileno()).st_size
        return os.pread(self._stderr.fileno(), size, 0).decode()

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self.is_running:
            self.kill()
        if kind is not None:
            # pytest shows it beside the failure.
            sys.stderr.write(f"--- {self.half} ended with {self._process.returncode}\n{self.said}")
        self._stderr.close()

    def _read_greeting(self) -> str:
        """It is written in one piece, as soon as connections are taken."""
        assert self._process.stdout is not None
        deadline = time.monotonic() + PATIENCE_SECONDS
        text = b""
        while b"Store" not in text or not text.endswith(b"\n\n"):
            left = max(deadline - time.monotonic(), 0)
            ready, _, _ = select.select([self._process.stdout], [], [], left)
            piece = os.read(self._process.stdout.fileno(), 65_536) if ready else b""
            if not piece:
                self.kill()
                raise AssertionError(f"no greeting, but {text!r}; {self.said}")
            text += piece
        return text.decode()
