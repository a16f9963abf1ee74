"""A request whose connection was closed before it came is sent once more, and in the same time."""

import asyncio
from time import perf_counter

from cuepost.domain.attempt import Outcome
from cuepost.domain.receiver_url import parse_receiver_url
from cuepost.ports.transport import Request
from tests.adapters.sender import BODY, HEADERS, sender
from tests.support.fault_server import OK, Peer, answering, fault_server


async def test_the_replacement_is_a_new_connection_however_many_rest() -> None:
    """All that rest may have been closed, and each of them may have read the request."""

    async def script(peer: Peer) -> None:
        is_to_rest = len(server.peers) <= 2
        await peer.request()
        if is_to_rest:
            both_came.release()
            await both_came.wait()
        peer.send(OK)
        if is_to_rest:
            await peer.request()
            await peer.close()

    both_came = Turnstile(2)
    async with fault_server(script) as server:
        with sender() as client:
            url = f"http://receiver.example:{server.port}/"
            first = await asyncio.gather(client.post(url), client.post(url))
            assert [each.status for each in first] == [200, 200]
            assert (await client.post(url)).status == 200
    assert (len(server.peers), len(server.requests)) == (3, 4)


class Turnstile:
    """Opens once `count` callers have arrived."""

    def __init__(self, count: int) -> None:
        self._missing = count
        self._open = asyncio.Event()

    def release(self) -> None:
        self._missing -= 1
        if not self._missing:
            self._open.set()

    async def wait(self) -> None:
        await asyncio.wait_for(self._open.wait(), 5)


async def test_the_time_of_a_request_that_is_sent_again_runs_since_it_was_sent_first() -> None:
    async with fault_server(answering(OK)) as server:
        with sender() as client:
            url = parse_receiver_url(f"http://127.0.0.1:{server.port}/", client.policy)
            request = Request(url, HEADERS, BODY, 15.0, sent_at=perf_counter() - 100)
            exchange = await client.transport.send(request)
    assert exchange.fault is Outcome.TIMEOUT
    assert exchange.duration_ms >= 100_000
