"""Do 200 concurrent downloads move webhook latency? Measured beside the same service at rest.

Latency is from a call of the API to the request that the receiver sees, at a steady rate. The
service, those who download, the receiver and the caller share the cores of one machine, so that
what is measured is worse than what a service with a network before it would have.
"""

import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx2

from benchmarks.figures import Comparison, Figure
from benchmarks.proof import require_kept
from benchmarks.sizes import Downloads, Sizes
from tests.e2e.story import Visitor, keys_in, request
from tests.faults.world import asked, stored
from tests.support.history_checker import History, Seen
from tests.support.recording_receiver import RecordingReceiver
from tests.support.service_process import ServiceProcess, free_port

CALLS_PER_SECOND = 50
FILE_BYTES = 1 << 40
KEY = "exports/film.mp4"
PIECE = 256 * 1024


def measured(sizes: Sizes) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder, RecordingReceiver() as receiver:
        settings = {
            "DATA_DIR": folder,
            "PORT": str(free_port()),
            "RATE_LIMIT": "1000000",
            "RECEIVER_HTTP": "true",
            "RECEIVER_NETWORKS": "127.0.0.0/8",
            "RECEIVER_PORTS": str(receiver.port),
        }
        with ServiceProcess(settings) as service:
            keys = keys_in(service.greeting)
            assert keys is not None
            visitor = Visitor(f"http://127.0.0.1:{settings['PORT']}", keys)
            link = exported(visitor, Path(folder, "media", KEY))
            webhook = visitor.post("/v1/webhooks", {"url": receiver.url("/hook")})
            found = compared(visitor, receiver, link, webhook["id"], sizes.downloads)
            assert service.stop().code == 0
        require_proved(settings, receiver, webhook["id"], webhook["secret"])
    for key, comparison in zip(("p50", "p95"), found, strict=True):
        yield Figure.of(f"downloads.{key}", comparison)


def compared(
    visitor: Visitor, receiver: RecordingReceiver, link: str, webhook: str, scale: Downloads
) -> Sequence[Comparison]:
    latencies(visitor, receiver, webhook, scale.calls)
    at_rest: list[float] = []
    during: list[float] = []
    # By turns, so that whatever else the machine does falls on both.
    for _ in range(scale.rounds):
        at_rest += latencies(visitor, receiver, webhook, scale.calls)
        with downloading(link, scale):
            during += latencies(visitor, receiver, webhook, scale.calls)
    beside = "no downloads"
    name = f"{scale.downloads} downloads at {scale.rate / 2**20:.1f} MiB/s"
    return [
        Comparison(f"latency p50, {name}", "µs", middle(during), beside, middle(at_rest)),
        Comparison(f"latency p95, {name}", "µs", late(during), beside, late(at_rest)),
    ]


def require_proved(
    settings: dict[str, str], receiver: RecordingReceiver, webhook: str, secret: str
) -> None:
    seen = [
        Seen(each.at, webhook, each.headers, each.body, each.status) for each in receiver.seen()
    ]
    deliveries = asyncio.run(asked(settings, stored))
    acknowledged = {each.event_id for each in deliveries}
    require_kept(History(acknowledged, seen, deliveries, {webhook: [secret]}))


def exported(visitor: Visitor, file: Path) -> str:
    """A link to a file that takes no room and has no end within this run."""
    file.parent.mkdir(parents=True)
    file.touch()
    os.truncate(file, FILE_BYTES)
    project = visitor.post("/v1/projects", {"name": "Film"})["id"]
    visitor.report(project, "processing", "exporting")
    artifact = {
        "kind": "video",
        "name": "film.mp4",
        "key": KEY,
        "contentType": "video/mp4",
        "sizeBytes": FILE_BYTES,
    }
    report = {"reportId": "done", "projectId": project, "status": "completed"}
    body = {"milestones": [report | {"artifacts": [artifact]}]}
    request(visitor.base_url, visitor.keys.service, "POST", "/v1/milestones", body)
    link: str = visitor.get(f"/v1/projects/{project}/result")["links"][0]["url"]
    return link


def latencies(
    visitor: Visitor, receiver: RecordingReceiver, webhook: str, calls: int
) -> list[float]:
    """In microseconds, of test events that are asked for one by one."""
    headers = {"Authorization": f"Bearer {visitor.keys.api}"}
    called: dict[str, float] = {}
    seen = len(receiver.seen())
    with httpx2.Client(base_url=visitor.base_url, headers=headers, trust_env=False) as client:
        begun = time.time()
        for number in range(calls):
            time.sleep(max(begun + number / CALLS_PER_SECOND - time.time(), 0))
            at = time.time()
            answer = client.post(f"/v1/webhooks/{webhook}/test")
            called[answer.json()["eventId"]] = at
    receiver.wait_until(lambda each: len(each.requests) >= seen + calls, "not all arrived")
    arrived = {each.event_id: each.at for each in receiver.seen()[seen:]}
    return [(arrived[event] - at) * 1_000_000 for event, at in called.items()]


def middle(found: list[float]) -> float:
    return statistics.median(found)


def late(found: list[float]) -> float:
    return statistics.quantiles(found, n=20)[-1]


@contextmanager
def downloading(link: str, scale: Downloads) -> Iterator[None]:
    """In a process of its own; all downloads run when the block begins, and when it ends."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.downloads", link, str(scale.downloads), str(scale.rate)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"all run\n"
        yield
        told, _ = process.communicate(b"\n", timeout=30)
        rate = json.loads(told)["bytes_per_second"]
        assert rate > 0.8 * scale.downloads * scale.rate, f"only {rate / 2**20:.0f} MiB/s"
    finally:
        process.kill()
        process.wait()


async def download_all(link: str, downloads: int, rate: int) -> None:
    count = [0] * downloads
    async with asyncio.TaskGroup() as group:
        running = [asyncio.Event() for _ in range(downloads)]
        tasks = [
            group.create_task(download(link, rate, number, count, running[number]))
            for number in range(downloads)
        ]
        for each in running:
            await each.wait()
        count[:], begun = [0] * downloads, time.monotonic()
        print("all run", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        reached = sum(count) / (time.monotonic() - begun)
        print(json.dumps({"bytes_per_second": reached}), flush=True)
        for task in tasks:
            task.cancel()


async def download(
    link: str, rate: int, number: int, count: list[int], runs: asyncio.Event
) -> None:
    """Takes what has come twice a second, to leave the cores to the service.

    It counts as running after two seconds, when the buffers of both systems have filled up.
    """
    parts, loop, buffer = urlsplit(link), asyncio.get_running_loop(), bytearray(rate)
    with socket.create_connection((str(parts.hostname), parts.port)) as client:
        client.setblocking(False)
        head = f"GET {parts.path} HTTP/1.1\r\nhost: {parts.netloc}\r\n\r\n"
        await loop.sock_sendall(client, head.encode())
        begun, got = time.monotonic() + number / len(count), 0
        while True:
            await asyncio.sleep(max(begun + got / rate - time.monotonic(), 0))
            piece = await loop.sock_recv_into(client, memoryview(buffer)[:PIECE])
            assert piece, "the download ended"
            got += piece
            count[number] += piece
            if got > 2 * rate:
                runs.set()


if __name__ == "__main__":
    asyncio.run(download_all(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
