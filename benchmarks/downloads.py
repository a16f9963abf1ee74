"""Whether 200 concurrent downloads affect webhook latency, compared with the same idle service.

Latency is from an API call to the request at the receiver, at a steady rate. The service, the
downloading clients, the receiver and the caller share the cores of one machine. To see the effect
of that alone, the same downloads are also served by a separate server.
"""

import asyncio
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import attrgetter, truediv
from pathlib import Path
from statistics import median, quantiles

import httpx2

from benchmarks.checkout import OURS
from benchmarks.fetching import downloading
from benchmarks.figures import Figure
from benchmarks.file_server import file_server
from benchmarks.processes import cpu_seconds
from benchmarks.proof import require_kept
from benchmarks.sizes import Downloads, Sizes
from tests.e2e.first_steps import ApiUser, keys_in, request
from tests.faults.harness import asked, stored
from tests.support.history_checker import History, Seen
from tests.support.recording_receiver import RecordingReceiver
from tests.support.service_process import free_port

CALLS_PER_SECOND = 50
FILE_BYTES = 1 << 40
KEY = "exports/film.mp4"


@dataclass(frozen=True, slots=True)
class Deployment:
    api_user: ApiUser
    receiver: RecordingReceiver
    webhook: str
    pid: int


def measured(sizes: Sizes) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder, RecordingReceiver() as receiver:
        settings = {
            "DATA_DIR": folder,
            "PORT": str(free_port()),
            "RECEIVER_HTTP": "true",
            "RECEIVER_NETWORKS": "127.0.0.0/8",
            "RECEIVER_PORTS": str(receiver.port),
        }
        with OURS.service(settings, "serve", Path(folder, "serve.log")) as service:
            keys = keys_in(service.greeting)
            assert keys is not None
            api_user = ApiUser(f"http://127.0.0.1:{settings['PORT']}", keys)
            file = Path(folder, "media", KEY)
            link = exported(api_user, file)
            webhook = api_user.post("/v1/webhooks", {"url": receiver.url("/hook")})
            deployment = Deployment(api_user, receiver, webhook["id"], service.pid)
            found = compared(deployment, link, file, sizes.downloads)
            assert service.stop().code == 0
        require_proved(settings, receiver, webhook["id"], webhook["secret"])
    for which in ("p50", "p95"):
        yield found.figure(which, sizes.downloads)


@dataclass(frozen=True, slots=True)
class Measurement:
    """Latencies in microseconds, and the service's CPU per second."""

    p50: float
    p95: float
    cpu: float


@dataclass(slots=True)
class Rounds:
    """The variants take turns, so that other work of the machine affects all of them."""

    at_rest: list[Measurement] = field(default_factory=list)
    beside_others: list[Measurement] = field(default_factory=list)
    during: list[Measurement] = field(default_factory=list)

    def figure(self, which: str, scale: Downloads) -> Figure:
        of = attrgetter(which)
        rest, others, ours = (
            [of(each) for each in some] for some in (self.at_rest, self.beside_others, self.during)
        )
        name = f"{scale.downloads} downloads at {scale.rate / 2**20:.1f} MiB/s"
        raw = {
            "no downloads": median(rest),
            "ratio": median(map(truediv, ours, rest)),
            "the same from a server of their own": median(others),
            "ratio of that": median(map(truediv, others, rest)),
            "ratio to that": median(map(truediv, ours, others)),
            "service CPU ms per MiB": self._cpu_per_mib(scale),
            "rounds": len(ours),
        }
        return Figure(f"downloads.{which}", f"latency {which}, {name}", "µs", median(ours), raw)

    def _cpu_per_mib(self, scale: Downloads) -> float:
        more = median(a.cpu - b.cpu for a, b in zip(self.during, self.at_rest, strict=True))
        return more * 1000 / (scale.downloads * scale.rate / 2**20)


def compared(deployment: Deployment, link: str, file: Path, scale: Downloads) -> Rounds:
    found = Rounds()
    latencies(deployment, scale.calls)
    with file_server(file) as other:
        for _ in range(scale.rounds):
            found.at_rest.append(measure(deployment, scale.calls))
            with downloading(other, scale):
                found.beside_others.append(measure(deployment, scale.calls))
            with downloading(link, scale):
                found.during.append(measure(deployment, scale.calls))
    return found


def measure(deployment: Deployment, calls: int) -> Measurement:
    used, begun = cpu_seconds([deployment.pid]), time.monotonic()
    found = latencies(deployment, calls)
    cpu = (cpu_seconds([deployment.pid]) - used) / (time.monotonic() - begun)
    return Measurement(median(found), quantiles(found, n=20)[-1], cpu)


def require_proved(
    settings: dict[str, str], receiver: RecordingReceiver, webhook: str, secret: str
) -> None:
    seen = [
        Seen(each.at, webhook, each.headers, each.body, each.status) for each in receiver.seen()
    ]
    deliveries = asyncio.run(asked(settings, stored))
    acknowledged = {each.event_id for each in deliveries}
    require_kept(History(acknowledged, seen, deliveries, {webhook: [secret]}))


def exported(api_user: ApiUser, file: Path) -> str:
    """A link to a sparse file that is too large to end within this run."""
    file.parent.mkdir(parents=True)
    file.touch()
    os.truncate(file, FILE_BYTES)
    project = api_user.post("/v1/projects", {"name": "Film"})["id"]
    api_user.report(project, "processing", "exporting")
    artifact = {
        "kind": "video",
        "name": "film.mp4",
        "key": KEY,
        "contentType": "video/mp4",
        "sizeBytes": FILE_BYTES,
    }
    report = {"reportId": "done", "projectId": project, "status": "completed"}
    body = {"milestones": [report | {"artifacts": [artifact]}]}
    request(api_user.base_url, api_user.keys.service, "POST", "/v1/milestones", body)
    link: str = api_user.get(f"/v1/projects/{project}/result")["links"][0]["url"]
    return link


def latencies(deployment: Deployment, calls: int) -> list[float]:
    """Latencies in microseconds of test events that are requested one by one."""
    api_user, receiver = deployment.api_user, deployment.receiver
    headers = {"Authorization": f"Bearer {api_user.keys.api}"}
    called: dict[str, float] = {}
    seen = len(receiver.seen())
    with httpx2.Client(base_url=api_user.base_url, headers=headers, trust_env=False) as client:
        begun = time.time()
        for number in range(calls):
            time.sleep(max(begun + number / CALLS_PER_SECOND - time.time(), 0))
            at = time.time()
            answer = client.post(f"/v1/webhooks/{deployment.webhook}/test")
            called[answer.json()["eventId"]] = at
    receiver.wait_until(lambda each: len(each.requests) >= seen + calls, "not all arrived")
    arrived = {each.event_id: each.at for each in receiver.seen()[seen:]}
    return [(arrived[event] - at) * 1_000_000 for event, at in called.items()]
