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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx2

from benchmarks.figures import Comparison
from tests.e2e.story import Visitor, keys_in, request
from tests.support.recording_receiver import RecordingReceiver
from tests.support.service_process import ServiceProcess, free_port

DOWNLOADS = 200
# Of each: together 100 MiB/s, which is most of what a gigabit line carries.
BYTES_PER_SECOND = 512 * 1024
ROUNDS = 3
CALLS = 150
CALLS_PER_SECOND = 50
FILE_BYTES = 1 << 40
KEY = "exports/film.mp4"
PIECE = 256 * 1024


async def compare() -> list[Comparison]:
    return await asyncio.to_thread(measured)


def measured() -> list[Comparison]:
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
            return compared(visitor, receiver, link)


def compared(visitor: Visitor, receiver: RecordingReceiver, link: str) -> list[Comparison]:
    webhook = visitor.post("/v1/webhooks", {"url": receiver.url("/hook")})["id"]
    latencies(visitor, receiver, webhook)
    at_rest: list[float] = []
    during: list[float] = []
    # By turns, so that whatever else the machine does falls on both.
    for _ in range(ROUNDS):
        at_rest += latencies(visitor, receiver, webhook)
        with downloading(link):
            during += latencies(visitor, receiver, webhook)
    beside, name = "no downloads", f"{DOWNLOADS} downloads at 0.5 MiB/s"
    return [
        Comparison(f"latency p50, {name}", "µs", middle(during), beside, middle(at_rest)),
        Comparison(f"latency p95, {name}", "µs", late(during), beside, late(at_rest)),
    ]


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


def latencies(visitor: Visitor, receiver: RecordingReceiver, webhook: str) -> list[float]:
    """In microseconds, of test events that are asked for one by one."""
    headers = {"Authorization": f"Bearer {visitor.keys.api}"}
    called: dict[str, float] = {}
    seen = len(receiver.seen())
    with httpx2.Client(base_url=visitor.base_url, headers=headers, trust_env=False) as client:
        begun = time.time()
        for number in range(CALLS):
            time.sleep(max(begun + number / CALLS_PER_SECOND - time.time(), 0))
            at = time.time()
            answer = client.post(f"/v1/webhooks/{webhook}/test")
            called[answer.json()["eventId"]] = at
    receiver.wait_until(lambda each: len(each.requests) >= seen + CALLS, "not all arrived")
    arrived = {each.event_id: each.at for each in receiver.seen()[seen:]}
    return [(arrived[event] - at) * 1_000_000 for event, at in called.items()]


def middle(found: list[float]) -> float:
    return statistics.median(found)


def late(found: list[float]) -> float:
    return statistics.quantiles(found, n=20)[-1]


@contextmanager
def downloading(link: str) -> Iterator[None]:
    """In a process of its own; all downloads run when the block begins, and when it ends."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.downloads", link],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"all run\n"
        yield
        told, _ = process.communicate(b"\n", timeout=30)
        rate = json.loads(told)["bytes_per_second"]
        assert rate > 0.8 * DOWNLOADS * BYTES_PER_SECOND, f"only {rate / 2**20:.0f} MiB/s"
    finally:
        process.kill()
        process.wait()


async def download_all(link: str) -> None:
    count = [0] * DOWNLOADS
    async with asyncio.TaskGroup() as group:
        running = [asyncio.Event() for _ in range(DOWNLOADS)]
        tasks = [
            group.create_task(download(link, number, count, running[number]))
            for number in range(DOWNLOADS)
        ]
        for each in running:
            await each.wait()
        count[:], begun = [0] * DOWNLOADS, time.monotonic()
        print("all run", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        rate = sum(count) / (time.monotonic() - begun)
        print(json.dumps({"bytes_per_second": rate}), flush=True)
        for task in tasks:
            task.cancel()


async def download(link: str, number: int, count: list[int], runs: asyncio.Event) -> None:
    """Takes what has come twice a second, to leave the cores to the service.

    It counts as running after two seconds, when the buffers of both systems have filled up.
    """
    parts, loop, buffer = urlsplit(link), asyncio.get_running_loop(), bytearray(BYTES_PER_SECOND)
    with socket.create_connection((str(parts.hostname), parts.port)) as client:
        client.setblocking(False)
        head = f"GET {parts.path} HTTP/1.1\r\nhost: {parts.netloc}\r\n\r\n"
        await loop.sock_sendall(client, head.encode())
        begun, got = time.monotonic() + number / DOWNLOADS, 0
        while True:
            await asyncio.sleep(max(begun + got / BYTES_PER_SECOND - time.monotonic(), 0))
            piece = await loop.sock_recv_into(client, memoryview(buffer)[:PIECE])
            assert piece, "the download ended"
            got += piece
            count[number] += piece
            if got > 2 * BYTES_PER_SECOND:
                runs.set()


if __name__ == "__main__":
    asyncio.run(download_all(sys.argv[1]))
