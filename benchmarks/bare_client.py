"""Measures the service's HTTP client without the rest of the service: an upper limit.

The first figure is what the receiver accepts from a sender that costs almost nothing, to show that
the receiver does not limit the client.
"""

import asyncio
import gc
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import uvloop

from benchmarks.feeding import generated, request
from benchmarks.figures import Figure, middle
from benchmarks.generator import Job
from benchmarks.receiving import receiving
from benchmarks.signed import PATH, Signed, require_received, signed
from benchmarks.sizes import Sizes
from cuepost.adapters.guarded_transport import GuardedTransport, tls_context
from cuepost.adapters.system_resolver import SystemResolver
from cuepost.domain.egress_policy import EgressPolicy, parse_networks
from cuepost.domain.receiver_url import parse_receiver_url
from cuepost.ports.transport import Request

IN_FLIGHT = 100
TIMEOUT_SECONDS = 600
KINDS = {
    "plain.keep-alive": (False, True, "plain HTTP, keep-alive"),
    "tls.keep-alive": (True, True, "TLS, keep-alive"),
    "plain.new": (False, False, "plain HTTP, a new connection each"),
    "tls.new": (True, False, "TLS, a new connection each"),
}


class Done(msgspec.Struct):
    seconds: float
    cpu: float
    ids: list[str]


def measured(sizes: Sizes) -> Iterator[Figure]:
    raw = middle([_receiver_alone(sizes.bare_requests) for _ in range(sizes.rounds)], "rate")
    yield Figure("receiver", "the receiver, from a pipelined generator", "/s", raw["rate"], raw)
    for key, (tls, keep_alive, name) in KINDS.items():
        count = sizes.bare_requests if keep_alive else sizes.new_connections
        rounds = [sent(count, tls=tls, keep_alive=keep_alive) for _ in range(sizes.rounds)]
        raw = middle(rounds, "rate")
        yield Figure(f"bare.{key}", f"the bare client, {name}", "/s", raw["rate"], raw)


def _receiver_alone(count: int) -> Mapping[str, float]:
    requests = signed(count)
    written = [request(PATH, dict(each.headers), each.body) for each in requests]
    with tempfile.TemporaryDirectory() as name, receiving(Path(name)) as receiver:
        before = receiver.cpu
        done = generated(Job(receiver.port, written, connections=8, at_once=16))
        cpu = receiver.cpu - before
        require_received(receiver, {each.id for each in requests})
    seconds = max(each.answered for each in done.answers) - min(each.began for each in done.answers)
    return {
        "rate": count / seconds,
        "receiver CPU s per 1,000": 1_000 * cpu / count,
        "generator CPU s per 1,000": 1_000 * done.cpu / count,
    }


def sent(count: int, *, tls: bool = False, keep_alive: bool = True) -> Mapping[str, float]:
    """Runs in a separate process, which imports much less than this one."""
    with (
        tempfile.TemporaryDirectory() as name,
        receiving(
            Path(name), tls=tls, keep_alive=keep_alive, processes=1 if keep_alive else 2
        ) as receiver,
    ):
        before = receiver.cpu
        reported = subprocess.run(
            [sys.executable, "-m", "benchmarks.bare_client", receiver.url(PATH), str(count)]
            + ([receiver.trusted] if receiver.trusted else []),
            stdout=subprocess.PIPE,
            check=True,
            timeout=TIMEOUT_SECONDS,
        )
        cpu = receiver.cpu - before
        done = msgspec.json.decode(reported.stdout, type=Done)
        require_received(receiver, set(done.ids))
    return {
        "rate": count / done.seconds,
        "app CPU s per 1,000": 1_000 * done.cpu / count,
        "receiver CPU s per 1,000": 1_000 * cpu / count,
        "receiver's share of a core": cpu / done.seconds,
    }


async def _sent(url: str, trusted: str | None, requests: Sequence[Signed]) -> None:
    policy = EgressPolicy(parse_networks("127.0.0.0/8"), ((1, 65_535),), allow_http=True)
    transport = GuardedTransport(policy, SystemResolver(), tls_context(trusted), IN_FLIGHT)
    parsed = parse_receiver_url(url, policy)
    left = iter(requests)

    async def one_by_one() -> None:
        for each in left:
            exchange = await transport.send(Request(parsed, each.headers, each.body, 15))
            assert exchange.status == 200, exchange

    async with asyncio.TaskGroup() as group:
        for _ in range(IN_FLIGHT):
            group.create_task(one_by_one())
    transport.close()


def main(url: str, count: str, trusted: str | None = None) -> None:
    requests = signed(int(count))
    # The garbage collector of the client must not scan the prepared requests.
    gc.freeze()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        cpu, began = time.process_time(), time.monotonic()
        runner.run(_sent(url, trusted, requests))
        done = Done(
            time.monotonic() - began, time.process_time() - cpu, [each.id for each in requests]
        )
    # Opened with a buffer: unbuffered, as some environments set it, a pipe may accept only a part.
    with os.fdopen(sys.stdout.fileno(), "wb", closefd=False) as reported:
        reported.write(msgspec.json.encode(done))


if __name__ == "__main__":
    main(*sys.argv[1:])
