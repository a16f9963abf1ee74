"""Starts the receiver, reads its requests, and converts them for the history checker."""

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from benchmarks.processes import cpu_seconds
from tests.support.certificates import Authority
from tests.support.history_checker import Seen

LOCAL = "127.0.0.1"
TIMEOUT_SECONDS = 300.0
AT_A_TIME = 0.01


@dataclass(slots=True)
class Receiver:
    """One process or several on one port; their requests are available after they have ended."""

    port: int
    scheme: str
    trusted: str | None
    reports: list[Path]
    processes: "list[subprocess.Popen[bytes]]"
    seen: list[tuple[float, bytes]] = field(default_factory=list)

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self.processes]

    @property
    def cpu(self) -> float:
        return cpu_seconds(self.pids)

    def url(self, path: str) -> str:
        return f"{self.scheme}://{LOCAL}:{self.port}{path}"

    def count(self) -> int:
        """The number of requests so far."""
        return sum(map(int, self._reported(signal.SIGUSR1, ".count")))

    def look(self) -> list[tuple[float, bytes]]:
        """The requests so far."""
        reported = self._reported(signal.SIGUSR2, ".seen")
        return [each for some in reported for each in _decoded(some)]

    def wait_for(
        self,
        requests: int,
        seconds: float = TIMEOUT_SECONDS,
        sender_lives: Callable[[], bool] = lambda: True,
    ) -> None:
        """Waits until it has received `count` requests; polls rarely, to not disturb it."""
        deadline = time.monotonic() + seconds
        while (count := self.count()) < requests:
            assert time.monotonic() < deadline, f"the receiver got {count} of {requests} requests"
            assert sender_lives(), f"the sender ended when {count} of {requests} requests had come"
            time.sleep(0.05)

    def end(self) -> None:
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait(TIMEOUT_SECONDS)
        self.seen = [each for path in self.reports for each in _decoded(path.read_bytes())]

    def kill(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait(TIMEOUT_SECONDS)

    def wait_until_ready(self) -> None:
        for path, process in zip(self.reports, self.processes, strict=True):
            _wait_until(path.with_name(path.name + ".ready").exists, process)

    def _reported(self, question: signal.Signals, suffix: str) -> list[bytes]:
        files = [path.with_name(path.name + suffix) for path in self.reports]
        for file, process in zip(files, self.processes, strict=True):
            file.unlink(missing_ok=True)
            process.send_signal(question)
        for file, process in zip(files, self.processes, strict=True):
            _wait_until(file.exists, process)
        return [file.read_bytes() for file in files]


def _decoded(report: bytes) -> list[tuple[float, bytes]]:
    return msgspec.msgpack.decode(report, type=list[tuple[float, bytes]])


def _wait_until(condition: Callable[[], bool], process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not condition():
        assert process.poll() is None, "the receiver has ended"
        assert time.monotonic() < deadline, "the receiver does not answer"
        time.sleep(AT_A_TIME)


@contextmanager
def receiving(
    folder: Path, *, tls: bool = False, keep_alive: bool = True, processes: int = 1
) -> Iterator[Receiver]:
    chain, trusted = folder / "chain.pem", None
    if tls:
        authority = Authority()
        chain.write_bytes(authority.server_chain(LOCAL))
        trusted = authority.write_to(folder / "authority.pem")
    reports = [folder / f"received-{number}" for number in range(processes)]
    with socket.create_server((LOCAL, 0), backlog=4_096) as listener:
        started = [
            _started(listener, report, str(chain) if tls else "", keep_alive) for report in reports
        ]
        port, scheme = listener.getsockname()[1], "https" if tls else "http"
        receiver = Receiver(port, scheme, trusted, reports, started)
        try:
            receiver.wait_until_ready()
            yield receiver
        finally:
            receiver.kill()


def _started(
    listener: socket.socket, report: Path, chain: str, keep_alive: bool
) -> "subprocess.Popen[bytes]":
    descriptor, closing = str(listener.fileno()), "" if keep_alive else "close"
    return subprocess.Popen(
        [sys.executable, "-m", "benchmarks.receiver", descriptor, str(report), chain, closing],
        pass_fds=[listener.fileno()],
    )


def read(at: float, raw: bytes, webhook_of: Mapping[str, str]) -> Seen:
    """The path identifies the endpoint."""
    head, _, body = raw.partition(b"\r\n\r\n")
    line, *fields = head.decode("ascii").split("\r\n")
    pairs = (field.split(": ", 1) for field in fields)
    headers = {name.lower(): value for name, value in pairs}
    return Seen(at, webhook_of[line.split(" ")[1]], headers, body)


def arrivals(seen: list[tuple[float, bytes]]) -> dict[str, float]:
    """When each event first arrived."""
    found: dict[str, float] = {}
    for at, raw in seen:
        head = raw[: raw.index(b"\r\n\r\n")].lower()
        place = head.index(b"webhook-id: ") + 12
        event_id = raw[place : raw.index(b"\r", place)].decode()
        found[event_id] = min(at, found.get(event_id, at))
    return found
