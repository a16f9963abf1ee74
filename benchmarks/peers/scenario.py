"""The same deliveries to the same receiver, sent by task queues instead of cuepost.

Time counts from the first enqueued job to the last request at the receiver. Only the worker counts
as the app: the process that enqueues jobs is the load generator, although it does the work of
cuepost's API.
"""

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.figures import Figure, NotRun, attempted, middle, percentile
from benchmarks.peers.environment import BULLMQ, PYTHON, environment
from benchmarks.peers.redis_server import NoRedis, redis_server
from benchmarks.processes import cpu_seconds, resident_megabytes, unshared_megabytes
from benchmarks.receiving import Receiver, arrivals, receiving
from benchmarks.signed import PATH, SECRET, body_of, event_ids, require_received
from benchmarks.sizes import Sizes
from tests.support.postgres import PostgresServer, fresh_database_sync

TIMEOUT_SECONDS = 600.0
WARM_UP = 200


@dataclass(frozen=True, slots=True)
class Broker:
    url: str
    pids: list[int] = field(default_factory=list)


@contextmanager
def _redis(_: Path) -> Iterator[Broker]:
    with redis_server() as server:
        yield Broker(server.url, server.pids)


@contextmanager
def _postgres(_: Path) -> Iterator[Broker]:
    with PostgresServer(durable=True) as server, fresh_database_sync(server.url) as url:
        assert server.pid is not None
        yield Broker(url, [server.pid])


@contextmanager
def _file(folder: Path) -> Iterator[Broker]:
    yield Broker(str(folder / "jobs.db"))


@dataclass(frozen=True, slots=True)
class Peer:
    """`worker` starts its worker, `feeder` enqueues jobs, `first` runs before both."""

    key: str
    name: str
    feeder: tuple[str, ...]
    broker: Callable[[Path], AbstractContextManager[Broker]]
    worker: tuple[str, ...]
    first: tuple[str, ...] = ()
    program: str = str(PYTHON)

    @property
    def missing(self) -> str | None:
        """Why it cannot be run here."""
        if self.program == NODE:
            return None if BULLMQ.are_ready else "no Node.js with BullMQ; `make bench` installs it"
        return None if PYTHON.exists() else "not installed; `make peers` does it"


def _app(module: str) -> tuple[str, ...]:
    return "-m", "benchmarks.peers.feeder", module


NODE = "node"
PEERS = (
    Peer(
        "bullmq",
        "BullMQ on Redis",
        (str(BULLMQ.source / "feed.cjs"),),
        _redis,
        (str(BULLMQ.source / "worker.cjs"),),
        program=NODE,
    ),
    Peer(
        "celery",
        "Celery on Redis",
        _app("celery_app"),
        _redis,
        (
            *("-m", "celery", "-A", "benchmarks.peers.celery_app", "worker"),
            *("--pool=threads", "--concurrency=16", "--loglevel=warning"),
            *("--without-gossip", "--without-mingle"),
        ),
    ),
    Peer(
        "arq",
        "arq on Redis",
        _app("arq_app"),
        _redis,
        (
            *("-m", "arq", "benchmarks.peers.arq_app.WorkerSettings"),
            *("--custom-log-dict", "benchmarks.peers.arq_app.QUIET"),
        ),
    ),
    Peer(
        "procrastinate",
        "Procrastinate on PostgreSQL",
        _app("procrastinate_app"),
        _postgres,
        ("-m", "benchmarks.peers.procrastinate_worker"),
        ("-m", "benchmarks.peers.procrastinate_worker", "set-up"),
    ),
    Peer(
        "huey",
        "Huey on SQLite",
        _app("huey_app"),
        _file,
        (
            *("-m", "huey.bin.huey_consumer", "benchmarks.peers.huey_app.huey"),
            *("-k", "thread", "-w", "16", "-d", "0.01", "-m", "0.05", "-q"),
        ),
    ),
)


def measured(sizes: Sizes) -> Iterator[Figure | NotRun]:
    for peer in PEERS:
        figures = _measured(peer, sizes)
        yield from attempted(f"peers.{peer.key}", peer.name, figures)


def _measured(peer: Peer, sizes: Sizes) -> Iterator[Figure | NotRun]:
    if peer.missing:
        yield NotRun(f"peers.{peer.key}", peer.name, peer.missing)
        return
    try:
        rounds = [_round(peer, sizes) for _ in range(sizes.peer_rounds)]
    except NoRedis as error:
        yield NotRun(f"peers.{peer.key}", peer.name, str(error))
        return
    raw = middle([rates for rates, _ in rounds], "rate")
    what = f"{peer.name}, plain HTTP, keep-alive"
    yield Figure(f"peers.{peer.key}.deliveries", what, "/s", raw["rate"], raw)
    low = middle([latencies for _, latencies in rounds], "p99")
    what = f"latency of {peer.name}, at {sizes.paced_rate}/s, p99"
    yield Figure(f"peers.{peer.key}.latency", what, "ms", low["p99"], low)


def _round(peer: Peer, sizes: Sizes) -> tuple[Mapping[str, float], Mapping[str, float]]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cuepost-peer-")))
        receiver = stack.enter_context(receiving(folder))
        broker = stack.enter_context(peer.broker(folder))
        known = environment(
            BENCH_URL=receiver.url(PATH), BENCH_BROKER=broker.url, BENCH_SECRET=SECRET.reveal()
        )
        if peer.first:
            _run(known, peer.program, *peer.first)
        worker = stack.enter_context(_working(peer, known))
        run = Run(peer, folder, known, receiver, broker, worker)
        run.sent(WARM_UP)
        rates = run.burst(sizes.peer_deliveries)
        latencies = run.paced(sizes.paced_rate, sizes.paced_seconds)
        require_received(receiver, run.handed_over)
    return rates, latencies


@dataclass(slots=True)
class Run:
    peer: Peer
    folder: Path
    known: Mapping[str, str]
    receiver: Receiver
    broker: Broker
    worker: "subprocess.Popen[bytes]"
    handed_over: set[str] = field(default_factory=set)

    def sent(self, count: int, rate: float = 0.0) -> tuple[dict[str, float], float]:
        """When each job was enqueued, and its cost; waits until all have arrived."""
        reported, result = self.folder / "job.json", self.folder / "done.json"
        jobs = [{"id": each, "body": body_of(each).decode()} for each in event_ids(count)]
        reported.write_text(json.dumps({"jobs": jobs, "rate": rate}), encoding="utf-8")
        _run(self.known, self.peer.program, *self.peer.feeder, str(reported), str(result))
        done = json.loads(result.read_text(encoding="utf-8"))
        self.handed_over |= set(done["began"])
        wanted = len(self.handed_over)
        self.receiver.wait_for(wanted, TIMEOUT_SECONDS, lambda: self.worker.poll() is None)
        return done["began"], done["cpu"]

    def burst(self, count: int) -> Mapping[str, float]:
        before = self._cpu()
        began, feeding = self.sent(count)
        app, store, receiver = (now - then for now, then in zip(self._cpu(), before, strict=True))
        arrived = arrivals(self.receiver.look())
        seconds = max(arrived[each] for each in began) - min(began.values())
        thousands = count / 1_000
        return {
            "rate": count / seconds,
            "app CPU s per 1,000": app / thousands,
            "store CPU s per 1,000": store / thousands,
            "receiver CPU s per 1,000": receiver / thousands,
            "generator CPU s per 1,000": feeding / thousands,
            "app MB": resident_megabytes([self.worker.pid]),
            "store MB": unshared_megabytes(self.broker.pids),
            "receiver's share of a core": receiver / seconds,
        }

    def paced(self, rate: int, seconds: int) -> Mapping[str, float]:
        began, _ = self.sent(rate * seconds, rate)
        arrived = arrivals(self.receiver.look())
        found = [1_000 * (arrived[each] - at) for each, at in began.items()]
        return {"p50": percentile(found, 50), "p99": percentile(found, 99), "most": max(found)}

    def _cpu(self) -> tuple[float, float, float]:
        return cpu_seconds([self.worker.pid]), cpu_seconds(self.broker.pids), self.receiver.cpu


def _run(known: Mapping[str, str], *command: str) -> None:
    subprocess.run(command, env=known, check=True, timeout=TIMEOUT_SECONDS)


@contextmanager
def _working(peer: Peer, known: Mapping[str, str]) -> "Iterator[subprocess.Popen[bytes]]":
    """Its worker, with all processes that it starts; errors go to our stderr."""
    process = subprocess.Popen(
        [peer.program, *peer.worker],
        env=known,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
