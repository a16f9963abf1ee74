"""`make soak`: a service at a steady rate for a long time; nothing is lost, and nothing grows.

A real `cuepost serve` on SQLite delivers to a local receiver that fails sometimes. Memory, open
descriptors and tasks are sampled every few seconds. At the end, the delivery guarantees are checked
for every event, and nothing may have grown in the second half of the run.
"""

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import click
import httpx2

from benchmarks.plot import charts
from benchmarks.population import populate
from benchmarks.soak_check import looked_at
from benchmarks.soak_feed import SteadyFeed
from tests.faults.harness import asked, drained
from tests.support.service_process import Ended, ServiceProcess, free_port

LOCAL = "127.0.0.1"
MASTER_KEY = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
TIMEOUT_SECONDS = 120.0
PATHS = ("/hook/0", "/hook/1", "/hook/2", "/hook/3")
PROJECTS_EACH = 50
PAUSES = (5.0, 10.0)
SAMPLE_SECONDS = 5.0
WAITING = "cuepost_deliveries_waiting"
# Allowed growth in the second half: a share of the mean, or an absolute amount if that is larger.
MOST_GROWTH = 0.05
LEAST_GROWTH = {"memory_mb": 8.0, "descriptors": 8.0, "tasks": 8.0}


@dataclass(frozen=True, slots=True)
class Sample:
    minutes: float
    memory_mb: float
    descriptors: int
    tasks: int
    waiting: int
    cpu_seconds: float


@dataclass(slots=True)
class Sampler:
    """Samples the service until it is told to stop."""

    pid: int
    port: int
    samples: list[Sample] = field(default_factory=list)
    _stopped: threading.Event = field(default_factory=threading.Event)
    _began: float = field(default_factory=time.monotonic)

    @contextmanager
    def running(self) -> Iterator[None]:
        thread = threading.Thread(target=self._run)
        thread.start()
        try:
            yield
        finally:
            self._stopped.set()
            thread.join(TIMEOUT_SECONDS)

    def _run(self) -> None:
        with httpx2.Client(base_url=f"http://{LOCAL}:{self.port}", trust_env=False) as client:
            while not self._stopped.is_set():
                self.samples.append(self._sample(client.get("/metrics").text))
                self._stopped.wait(SAMPLE_SECONDS)

    def _sample(self, metrics: str) -> Sample:
        found = [line.rsplit(" ", 1) for line in metrics.splitlines() if line[:1] != "#"]
        values = {name: float(value) for name, value in found}
        waiting = [values[name] for name in values if name.startswith(WAITING)]
        return Sample(
            minutes=(time.monotonic() - self._began) / 60,
            memory_mb=resident_megabytes(self.pid),
            descriptors=len(list(Path(f"/proc/{self.pid}/fd").iterdir())),
            tasks=round(values["cuepost_tasks"]),
            waiting=round(sum(waiting)),
            cpu_seconds=cpu_seconds(self.pid),
        )


@dataclass(frozen=True, slots=True)
class Report:
    minutes: float
    deliveries: int
    acknowledged: int
    requests: int
    repeated: int
    outcomes: dict[str, int]
    growth: dict[str, float]
    broken: list[str]
    samples: list[Sample]

    @property
    def faults(self) -> list[str]:
        second = self.samples[len(self.samples) // 2 :]
        found = list(self.broken)
        for name, growth in self.growth.items():
            mean = sum(getattr(each, name) for each in second) / len(second)
            if growth > max(MOST_GROWTH * mean, LEAST_GROWTH[name]):
                found.append(f"{name} grew by {growth:.1f} from a mean of {mean:.1f}")
        return found


def growth(samples: Sequence[Sample], name: str) -> float:
    """The growth of the linear fit of the second half."""
    second = samples[len(samples) // 2 :]
    times = [each.minutes for each in second]
    values: list[float] = [getattr(each, name) for each in second]
    middle, mean = sum(times) / len(times), sum(values) / len(values)
    spread = sum((moment - middle) ** 2 for moment in times)
    if not spread:
        return 0.0
    together = sum(
        (moment - middle) * (value - mean) for moment, value in zip(times, values, strict=True)
    )
    return together / spread * (times[-1] - times[0])


@dataclass(frozen=True, slots=True)
class Receiver:
    port: int
    notebook: Path
    process: "subprocess.Popen[bytes]"

    def end(self) -> None:
        self.process.terminate()
        assert self.process.wait(TIMEOUT_SECONDS) == 0


@contextmanager
def receiving(folder: Path) -> Iterator[Receiver]:
    notebook = folder / "received.sqlite3"
    with socket.create_server((LOCAL, 0), backlog=4_096) as listener:
        command = [sys.executable, "-m", "benchmarks.soak_receiver"]
        process = subprocess.Popen(
            [*command, str(listener.fileno()), str(notebook)], pass_fds=[listener.fileno()]
        )
        try:
            yield Receiver(listener.getsockname()[1], notebook, process)
        finally:
            process.kill()
            process.wait(TIMEOUT_SECONDS)


def soaked(folder: Path, minutes: float, deliveries: int) -> Report:
    with receiving(folder) as receiver:
        settings = _settings(folder, receiver.port)
        urls = {path: f"http://{LOCAL}:{receiver.port}{path}" for path in PATHS}
        populated = asyncio.run(populate(settings, urls, PROJECTS_EACH))
        projects = [
            each for some in zip(*populated.projects.values(), strict=True) for each in some
        ]
        port = int(settings["PORT"])
        feed = SteadyFeed(port, populated.service_key, deliveries / (minutes * 60))
        with ServiceProcess(settings, fresh=True) as service:
            sampler = Sampler(service.pid, port)
            with sampler.running():
                took = asyncio.run(feed.run(projects, deliveries))
                _wait_until_settled(settings)
            ended = service.stop()
        receiver.end()
        store = Path(settings["DATA_DIR"]) / "cuepost.sqlite3"
        found = looked_at(store, receiver.notebook, populated, feed.acknowledged, PAUSES)
    if ended != Ended(0, ""):
        found.broken.append(f"the service ended with {ended.code}: {ended.stderr[-500:]}")
    return Report(
        minutes=took,
        deliveries=found.deliveries,
        acknowledged=len(feed.acknowledged),
        requests=found.requests,
        repeated=found.repeated,
        outcomes=dict(found.outcomes),
        growth={name: growth(sampler.samples, name) for name in LEAST_GROWTH},
        broken=found.broken,
        samples=sampler.samples,
    )


def _settings(folder: Path, receiver_port: int) -> dict[str, str]:
    return {
        "DATA_DIR": str(folder / "data"),
        "PORT": str(free_port()),
        "MASTER_KEY": MASTER_KEY,
        "RECEIVER_HTTP": "true",
        "RECEIVER_NETWORKS": "127.0.0.0/8",
        "RECEIVER_PORTS": str(receiver_port),
        "SERVICE_RATE_LIMIT": "100000000",
        "RETRY_DELAYS": ",".join(map(str, PAUSES)),
    }


def _wait_until_settled(settings: dict[str, str]) -> None:
    until = time.monotonic() + TIMEOUT_SECONDS
    assert not asyncio.run(asked(settings, lambda store: drained(store, until)))


def resident_megabytes(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1024 / 1024


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def write(report: Report, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "soak.json").write_text(json.dumps(asdict(report), indent=1) + "\n")
    minutes = [each.minutes for each in report.samples]
    lines = {
        "resident memory, MB": [each.memory_mb for each in report.samples],
        "open descriptors": [float(each.descriptors) for each in report.samples],
        "tasks": [float(each.tasks) for each in report.samples],
        "deliveries waiting": [float(each.waiting) for each in report.samples],
    }
    title = f"{report.deliveries:,} deliveries in {report.minutes:.0f} minutes"
    (folder / "soak.svg").write_text(charts(minutes, lines, title))


@click.command()
@click.option("--minutes", type=click.FloatRange(0.1), default=60.0, show_default=True)
@click.option("--deliveries", type=click.IntRange(1), default=500_000, show_default=True)
@click.option(
    "--into", type=click.Path(path_type=Path), default=Path(".cache/soak"), show_default=True
)
def main(minutes: float, deliveries: int, into: Path) -> None:
    """Deliver events at a steady rate for hours; nothing may be lost and nothing may grow."""
    with tempfile.TemporaryDirectory(prefix="cuepost-soak-") as folder:
        report = soaked(Path(folder), minutes, deliveries)
    write(report, into)
    shown = {name: value for name, value in asdict(report).items() if name != "samples"}
    click.echo(json.dumps(shown | {"last": asdict(report.samples[-1])}, indent=1))
    for fault in report.faults[:20]:
        click.echo(fault, err=True)
    sys.exit(1 if report.faults else 0)


if __name__ == "__main__":
    main()
