"""Reports milestones to a running service from a separate process."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from benchmarks.generator import Done, Job
from benchmarks.processes import pin

TIMEOUT_SECONDS = 600.0


class _Result(msgspec.Struct, rename="camel"):
    accepted: bool
    event_id: str = ""


class _Answer(msgspec.Struct):
    results: list[_Result]


@dataclass(slots=True)
class Fed:
    """The acknowledged events, and when each request began and was answered."""

    acknowledged: set[str] = field(default_factory=set)
    began_at: dict[str, float] = field(default_factory=dict)
    began: float = 0.0
    ended: float = 0.0
    refused: int = 0
    cpu: float = 0.0

    @property
    def seconds(self) -> float:
        return self.ended - self.began


def batches(projects: Sequence[str], size: int) -> list[bytes]:
    """Bodies that complete these projects, in batches of this size."""
    return [
        msgspec.json.encode(
            {
                "milestones": [
                    {"reportId": f"done-{each}", "projectId": each, "status": "completed"}
                    for each in projects[first : first + size]
                ]
            }
        )
        for first in range(0, len(projects), size)
    ]


def request(path: str, headers: dict[str, str], body: bytes) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "host: bench"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    lines += [f"content-length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode() + body


def feed(
    port: int | str,
    key: str,
    bodies: Sequence[bytes],
    *,
    connections: int = 4,
    rate: float = 0.0,
    by_chance: bool = False,
    cores: Sequence[int] = (),
) -> Fed:
    """Sends as fast as answers arrive, or on schedule at a fixed rate."""
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    requests = [request("/v1/milestones", headers, body) for body in bodies]
    job = Job(int(port), requests, connections, rate=rate, by_chance=by_chance)
    done = generated(job, cores)
    fed = Fed(refused=done.refused, cpu=done.cpu)
    fed.began = min(answer.began for answer in done.answers)
    fed.ended = max(answer.answered for answer in done.answers)
    for answer in done.answers:
        events = acknowledged(answer.body)
        fed.acknowledged |= events
        fed.began_at |= dict.fromkeys(events, answer.began)
    return fed


def acknowledged(answer: bytes) -> set[str]:
    """The events of an answer that accepts everything."""
    results = msgspec.json.decode(answer, type=_Answer).results
    assert all(each.accepted for each in results), answer
    return {each.event_id for each in results}


def generated(job: Job, cores: Sequence[int] = ()) -> Done:
    with _written(job) as (reported, result):
        process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.generator", str(reported), str(result)]
        )
        if cores:
            pin([process.pid], cores)
        try:
            code = process.wait(TIMEOUT_SECONDS)
        finally:
            process.kill()
            process.wait()
        assert code == 0, "the load generator failed; it says why above"
        return msgspec.msgpack.decode(result.read_bytes(), type=Done)


@contextmanager
def _written(job: Job) -> Iterator[tuple[Path, Path]]:
    with tempfile.TemporaryDirectory(prefix="cuepost-bench-") as name:
        reported = Path(name, "job")
        reported.write_bytes(msgspec.msgpack.encode(job))
        yield reported, Path(name, "done")
