"""Download clients in a separate process: many from one link, each at a steady rate."""

import asyncio
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from benchmarks.sizes import Downloads

PIECE = 256 * 1024


@contextmanager
def downloading(link: str, scale: Downloads) -> Iterator[None]:
    """Runs in a separate process; all downloads are running at the begin and end of the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.fetching", link, str(scale.downloads), str(scale.rate)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"all run\n"
        yield
        reported, _ = process.communicate(b"\n", timeout=30)
        rate = json.loads(reported)["bytes_per_second"]
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
    """Reads only twice a second, to leave the cores to the service.

    A download counts as running after two seconds, when the buffers of both sides are full.
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
