"""What the product's own HTTP client does with nothing around it: the limit of everything else."""

import asyncio
import tempfile
import time
from pathlib import Path

import uvloop

from benchmarks.scenery import LOCAL, receiving
from cuepost.adapters.guarded_transport import GuardedTransport, tls_context
from cuepost.adapters.system_resolver import SystemResolver
from cuepost.domain.egress_policy import EgressPolicy, parse_networks
from cuepost.domain.receiver_url import parse_receiver_url
from cuepost.ports.transport import Request
from tests.support.certificates import Authority

IN_FLIGHT = 100
BODY = b"x" * 300


def rate(count: int, *, tls: bool = False, keep_alive: bool = True) -> float:
    """Requests a second, so many at once."""
    with tempfile.TemporaryDirectory() as name:
        folder, authority = Path(name), Authority()
        chain = folder / "chain.pem"
        chain.write_bytes(authority.server_chain(LOCAL))
        with receiving(folder, chain=chain if tls else None, closing=not keep_alive) as receiver:
            trusted = authority.write_to(folder / "authority.pem")
            url = f"{'https' if tls else 'http'}://{LOCAL}:{receiver.port}/ok"
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                seconds = runner.run(_sent(url, receiver.port, trusted, count))
    return count / seconds


async def _sent(url: str, port: int, trusted: str, count: int) -> float:
    policy = EgressPolicy(parse_networks("127.0.0.0/8"), ((port, port),), allow_http=True)
    transport = GuardedTransport(policy, SystemResolver(), tls_context(trusted), IN_FLIGHT)
    request = Request(parse_receiver_url(url, policy), (("content-type", "text/plain"),), BODY, 15)
    left = iter(range(count))

    async def one_by_one() -> None:
        for _ in left:
            exchange = await transport.send(request)
            assert exchange.status == 200, exchange

    began = time.monotonic()
    async with asyncio.TaskGroup() as group:
        for _ in range(IN_FLIGHT):
            group.create_task(one_by_one())
    seconds = time.monotonic() - began
    transport.close()
    return seconds
