"""What every scenario stands on: a receiver, a furnished store, running services, and the proof.

A figure counts only after the history checker has found every promise kept.
"""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from benchmarks.feeding import Fed
from benchmarks.furnishing import Furnished, furnish
from tests.faults.world import asked, drained, stored
from tests.support.history_checker import History, Seen
from tests.support.service_process import ServiceProcess, free_port

LOCAL = "127.0.0.1"
PATIENCE_SECONDS = 60.0
MASTER_KEY = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(slots=True)
class Receiver:
    """In a process of its own; what it saw is known once it has ended."""

    port: int
    report: Path
    process: "subprocess.Popen[bytes]"
    seen: list[tuple[float, bytes]] = field(default_factory=list)

    def count(self) -> int:
        """How many requests it has seen by now."""
        return int(self._told(signal.SIGUSR1, ".count"))

    def look(self) -> list[tuple[float, bytes]]:
        """What it has seen by now."""
        return _decoded(self._told(signal.SIGUSR2, ".seen"))

    def end(self) -> None:
        self.process.terminate()
        self.process.wait(PATIENCE_SECONDS)
        self.seen = _decoded(self.report.read_bytes())

    def _told(self, question: signal.Signals, suffix: str) -> bytes:
        told = self.report.with_name(self.report.name + suffix)
        told.unlink(missing_ok=True)
        self.process.send_signal(question)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not told.exists():
            assert time.monotonic() < deadline
            time.sleep(0.005)
        return told.read_bytes()


def _decoded(report: bytes) -> list[tuple[float, bytes]]:
    return msgspec.msgpack.decode(report, type=list[tuple[float, bytes]])


@contextmanager
def receiving(
    folder: Path, *, chain: Path | None = None, closing: bool = False
) -> Iterator[Receiver]:
    report = folder / "received"
    with socket.create_server((LOCAL, 0), backlog=4_096) as listener:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "benchmarks.receiver",
                str(listener.fileno()),
                str(report),
                str(chain or ""),
                "close" if closing else "",
            ],
            pass_fds=[listener.fileno()],
        )
        try:
            yield Receiver(listener.getsockname()[1], report, process)
        finally:
            process.kill()
            process.wait(PATIENCE_SECONDS)


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU seconds so far, and the memory of now in MB, of some processes together."""

    cpu: float
    memory: float


@dataclass(slots=True)
class Product:
    """cuepost at work on a furnished store."""

    settings: dict[str, str]
    receiver: Receiver
    furnished: Furnished
    services: list[ServiceProcess] = field(default_factory=list)

    @property
    def api(self) -> str:
        return self.settings["PORT"]

    def start(self, halves: Sequence[str]) -> None:
        for half in halves:
            self.services.append(ServiceProcess(self.settings, half))

    def kill(self) -> None:
        for service in self.services:
            service.kill()
        self.services.clear()

    def usage(self) -> Usage:
        pids = [service.pid for service in self.services]
        return Usage(sum(map(_cpu_seconds, pids)), sum(map(_resident_megabytes, pids)))

    def wait_for(self, requests: int) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.receiver.count() < requests:
            assert time.monotonic() < deadline, "the receiver did not get everything"
            time.sleep(0.02)

    def wait_for_events(self, events: set[str]) -> None:
        """Until each of them has arrived, whatever else arrives."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not events <= self._arrivals().keys():
            assert time.monotonic() < deadline, "the receiver did not get everything"
            time.sleep(0.5)

    def latencies(self, fed: Fed) -> list[float]:
        """Of each event, from the call of the API to the receiver's request."""
        arrivals = self._arrivals()
        return [arrivals[event_id] - began for event_id, began in fed.began_at.items()]

    def _arrivals(self) -> dict[str, float]:
        found: dict[str, float] = {}
        for at, raw in self.receiver.look():
            place = raw.index(b"webhook-id: ") + 12
            found.setdefault(raw[place : place + 36].decode(), at)
        return found

    def proved(self, acknowledged: set[str]) -> History:
        """Ends everything and holds the promises against what happened."""
        self.wait_until_settled()
        for service in self.services:
            assert service.stop().code == 0
        self.receiver.end()
        history = History(
            acknowledged=acknowledged,
            seen=[_seen(at, raw, self.furnished.webhook_of) for at, raw in self.receiver.seen],
            deliveries=asyncio.run(asked(self.settings, stored)),
            secrets={key: [secret] for key, secret in self.furnished.secret_of.items()},
        )
        broken = history.broken_promises()
        assert broken == [], broken[:5]
        assert {each.status for each in history.deliveries} == {"delivered"}
        return history

    def wait_until_settled(self) -> None:
        until = time.monotonic() + PATIENCE_SECONDS
        assert not asyncio.run(asked(self.settings, lambda store: drained(store, until)))


@contextmanager
def product(
    folder: Path,
    receiver: Receiver,
    *,
    database_url: str | None = None,
    halves: Sequence[str] = ("serve",),
    paths: Sequence[str] = ("/ok",),
    projects: int = 0,
    scheme: str = "http",
    settings: dict[str, str] | None = None,
) -> Iterator[Product]:
    """One account for each path, with an endpoint there and projects that are about to complete."""
    chosen = {
        "DATA_DIR": str(folder / "data"),
        "PORT": str(free_port()),
        "MASTER_KEY": MASTER_KEY,
        "RECEIVER_HTTP": "true",
        "RECEIVER_NETWORKS": "127.0.0.0/8",
        "RECEIVER_PORTS": str(receiver.port),
        "RATE_LIMIT": "100000000",
        "SERVICE_RATE_LIMIT": "100000000",
    }
    chosen |= {"DATABASE_URL": database_url} if database_url else {}
    chosen |= settings or {}
    urls = {path: f"{scheme}://{LOCAL}:{receiver.port}{path}" for path in paths}
    furnished = asyncio.run(furnish(chosen, urls, projects))
    it = Product(chosen, receiver, furnished)
    try:
        it.start(halves)
        yield it
    finally:
        it.kill()


def _seen(at: float, raw: bytes, webhook_of: dict[str, str]) -> Seen:
    head, _, body = raw.partition(b"\r\n\r\n")
    line, *fields = head.decode("ascii").split("\r\n")
    headers = dict(field.split(": ", 1) for field in fields)
    return Seen(at, webhook_of[line.split(" ")[1]], headers, body)


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _resident_megabytes(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0
