"""`make soak`: a service at a steady rate for a long time; nothing is lost, and nothing grows.

A real `cuepost serve` on SQLite delivers to a local receiver that fails sometimes. Memory, open
descriptors and tasks are noted every few seconds; in the end every event is held against the
promises, and in the second half of the run nothing may have grown.
"""

import asyncio
import json
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

from benchmarks.feeding import Fed, feed
from benchmarks.plot import charts
from benchmarks.scenery import (
    LOCAL,
    PATIENCE_SECONDS,
    Product,
    Receiver,
    cpu_seconds,
    product,
    resident_megabytes,
)
from benchmarks.soak_check import broken_promises

PATHS = ("/hook/0", "/hook/1", "/hook/2", "/hook/3")
PROJECTS_EACH = 50
EVENTS_AT_ONCE = 10
PAUSES = (5.0, 10.0)
SAMPLE_SECONDS = 5.0
WAITING = "cuepost_deliveries_waiting"
# What the second half of a run may gain: a share of its mean, or a little where that is more.
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
    """Notes how the service is, until it is told to stop."""

    pid: int
    port: str
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
            thread.join(PATIENCE_SECONDS)

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
    """What the straight line through the second half gains on its way."""
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


@contextmanager
def receiving(folder: Path) -> Iterator[Receiver]:
    report = folder / "received.sqlite3"
    with socket.create_server((LOCAL, 0), backlog=4_096) as listener:
        command = [sys.executable, "-m", "benchmarks.soak_receiver"]
        process = subprocess.Popen(
            [*command, str(listener.fileno()), str(report)], pass_fds=[listener.fileno()]
        )
        try:
            yield Receiver(listener.getsockname()[1], report, process)
        finally:
            process.kill()
            process.wait(PATIENCE_SECONDS)


def bodies(projects: Sequence[str], count: int) -> Iterator[bytes]:
    """Each finishes some projects once more."""
    for first in range(0, count, EVENTS_AT_ONCE):
        milestones = [
            {
                "reportId": f"soak-{number}-{status}",
                "projectId": projects[number % len(projects)],
                "status": status,
            }
            for number in range(first, min(first + EVENTS_AT_ONCE, count))
            for status in _steps(is_first=number < len(projects))
        ]
        yield json.dumps({"milestones": milestones}).encode()


def _steps(*, is_first: bool) -> tuple[str, ...]:
    """They begin shortly before their first completion."""
    return ("completed",) if is_first else ("exporting", "completed")


def soaked(folder: Path, minutes: float, deliveries: int) -> Report:
    settings = {"RETRY_DELAYS": ",".join(map(str, PAUSES))}
    with (
        receiving(folder) as receiver,
        product(folder, receiver, paths=PATHS, projects=PROJECTS_EACH, settings=settings) as it,
    ):
        projects = [
            each for some in zip(*it.furnished.projects.values(), strict=True) for each in some
        ]
        sampler = Sampler(it.services[0].pid, it.api)
        with sampler.running():
            fed = asyncio.run(
                feed(
                    it.api,
                    it.furnished.service_key,
                    bodies(projects, deliveries),
                    rate=deliveries / EVENTS_AT_ONCE / (minutes * 60),
                )
            )
            it.wait_until_settled()
        return _judged(it, fed, sampler.samples)


def _judged(it: Product, fed: Fed, samples: list[Sample]) -> Report:
    [service] = it.services
    ended = service.stop()
    it.receiver.process.terminate()
    it.receiver.process.wait(PATIENCE_SECONDS)
    found = broken_promises(it, fed.acknowledged - {""}, PAUSES)
    broken = list(found.broken)
    if (ended.code, ended.stderr) != (0, ""):
        broken.append(f"the service ended with {ended.code}: {ended.stderr[-500:]}")
    return Report(
        minutes=fed.seconds / 60,
        deliveries=found.deliveries,
        acknowledged=len(fed.acknowledged - {""}),
        requests=found.requests,
        repeated=found.repeated,
        outcomes=dict(found.outcomes),
        growth={name: growth(samples, name) for name in LEAST_GROWTH},
        broken=broken,
        samples=samples,
    )


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
    """Deliver so many events in so many minutes, and see that nothing is lost and nothing grows."""
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
