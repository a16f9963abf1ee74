"""A real `cuepost serve` with deliveries under way, watched by callers while others attack it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

import httpx2

from cuepost.adapters.system_clock import SystemClock
from tests.e2e.first_steps import Keys, keys_in
from tests.inbound.guarded_server import Line
from tests.support.recording_receiver import RecordingReceiver
from tests.support.service_process import ServiceProcess, free_port

WATCHER = "127.0.0.9"
PAUSE_SECONDS = 0.01
Attack = Callable[[int], Awaitable[None]]


@dataclass(slots=True)
class Watch:
    """How long `/healthz` took and how long events were on their way, in seconds."""

    health: list[float] = field(default_factory=list)
    deliveries: list[float] = field(default_factory=list)


@dataclass(slots=True)
class Attacked:
    service: ServiceProcess
    receiver: RecordingReceiver
    port: int
    keys: Keys

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def memory_bytes(self) -> int:
        """The memory of the process that is in use now."""
        for line in Path(f"/proc/{self.service.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1_024
        raise AssertionError("the process has no memory")

    @property
    def descriptors(self) -> int:
        return len(list(Path(f"/proc/{self.service.pid}/fd").iterdir()))

    async def refusals(self) -> dict[str, int]:
        async with self.caller() as client:
            text = (await client.get("/metrics")).text
        found = {}
        for line in text.splitlines():
            if line.startswith("cuepost_connections_refused_total{"):
                reason, _, count = line.partition('reason="')[2].partition('"} ')
                if float(count):
                    found[reason] = int(float(count))
        return found

    def caller(self) -> httpx2.AsyncClient:
        """Someone else, with an address of their own."""
        transport = httpx2.AsyncHTTPTransport(local_address=WATCHER)
        return httpx2.AsyncClient(base_url=self.base_url, transport=transport, timeout=30)

    async def watch(self, seconds: float, into: Watch) -> None:
        """Ask and report, again and again, for so long."""
        clock, end = SystemClock(), perf_counter() + seconds
        async with self.caller() as client:
            while perf_counter() < end:
                began = perf_counter()
                answer = await client.get("/healthz")
                into.health.append(perf_counter() - began)
                assert answer.status_code == 200
                into.deliveries.append(await self._delivery(client))
                await clock.wait(PAUSE_SECONDS)

    async def _delivery(self, client: httpx2.AsyncClient) -> float:
        """From the report of a milestone to its arrival at the receiver."""
        account = {"authorization": f"Bearer {self.keys.api}"}
        service = {"authorization": f"Bearer {self.keys.service}"}
        made = await client.post("/v1/projects", json={"name": "x"}, headers=account)
        project = made.json()["id"]
        milestones = [
            {"reportId": f"{project}-{status}", "projectId": project, "status": status}
            for status in ("processing", "exporting", "completed")
        ]
        began, before = perf_counter(), len(self.receiver.seen())
        await client.post("/v1/milestones", json={"milestones": milestones}, headers=service)
        clock = SystemClock()
        async with asyncio.timeout(20):
            while len(self.receiver.seen()) == before:
                await clock.wait(0.001)
        return perf_counter() - began


@asynccontextmanager
async def attacked_service(folder: Path, **settings: str) -> AsyncIterator[Attacked]:
    port = free_port()
    with RecordingReceiver() as receiver:
        environ = {
            "DATA_DIR": str(folder / "data"),
            "PORT": str(port),
            "RECEIVER_HTTP": "true",
            "RECEIVER_NETWORKS": "127.0.0.0/8",
            "RECEIVER_PORTS": str(receiver.port),
            "RATE_LIMIT": "1000000",
            **settings,
        }
        with ServiceProcess(environ) as service:
            keys = keys_in(service.greeting)
            assert keys is not None
            it = Attacked(service, receiver, port, keys)
            async with it.caller() as client:
                made = await client.post(
                    "/v1/webhooks",
                    json={"url": receiver.url("/hook")},
                    headers={"authorization": f"Bearer {keys.api}"},
                )
                assert made.status_code == 201
            # The first ones load what is loaded late.
            await it.watch(0.5, Watch())
            yield it


def slowest(samples: list[float]) -> float:
    """The 99th percentile; of few samples the 90th, since the 99th would be a single one."""
    share = 0.99 if len(samples) >= 500 else 0.9
    return sorted(samples)[int(len(samples) * share)]


async def flood(port: int, beginning: bytes, endless: bytes, size: int) -> int:
    """Send as much of it as the other side lets through, and how much that was."""
    line, sent = await Line.open(port), 0
    try:
        await line.say(beginning)
        while sent < size:
            await line.say(endless)
            sent += len(endless)
    except ConnectionError:
        pass
    finally:
        line.close()
    return sent
