"""Hostile receivers, TLS and DNS, mixed by chance: every exchange ends as it has to, and cleanly.

`CUEPOST_TEST_HOSTILE_MIXES` says how many mixes, `CUEPOST_TEST_HOSTILE_FIRST` which is the first.
"""

import asyncio
import os
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import chain, count
from typing import Any

import pytest

from cuepost.adapters import guarded_dialler
from cuepost.adapters.answer_reader import BODY_KEPT, LARGEST_HEAD, MOST_HEADERS
from cuepost.adapters.http_connection import HttpConnection
from tests.adapters.hostile.hostile_network import ADDRESSES, POLICY, Certificates, network
from tests.adapters.hostile.mix import MIX, DrawnResolver, Mix, ScriptedRequest
from tests.adapters.sender import ConnectionRecord, open_sockets, sender
from tests.support.certificates import Authority
from tests.support.fault_server import Peer, PeerGone, ReceivedRequest, Script

MIXES = int(os.environ.get("CUEPOST_TEST_HOSTILE_MIXES", "60"))
FIRST = int(os.environ.get("CUEPOST_TEST_HOSTILE_FIRST", "1"))
AT_ONCE = 30
LONGEST_END_SECONDS = 5.0
LARGEST_ANSWER = LARGEST_HEAD + guarded_dialler._READ_BUFFER_SIZE + BODY_KEPT


@pytest.fixture(scope="session")
def certificates(authority: Authority) -> Certificates:
    return Certificates(authority)


@pytest.fixture(autouse=True)
def noted_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    def noted(*arguments: Any) -> HttpConnection:
        connection = HttpConnection(*arguments)
        MIX.get().connections.append(connection)
        return connection

    monkeypatch.setattr(guarded_dialler, "HttpConnection", noted)


def serving(mixes: Sequence[Mix]) -> Script:
    """Does with each request what was drawn for it."""
    scripted_requests = {
        scripted_request.tag: (mix, scripted_request)
        for mix in mixes
        for scripted_request in mix.scripted_requests()
    }

    async def script(peer: Peer) -> None:
        for nth in count():
            head = await peer.request_without_body()
            mix, scripted_request = scripted_requests[head.header("webhook-id")]
            if mix.has_ended(peer):
                break
            try:
                await received(peer, mix, scripted_request, head, nth)
            except (AssertionError, TimeoutError) as error:
                mix.troubles.append(f"{error!r}: {scripted_request}")
                break
        await peer.wait_until_gone()

    return script


async def received(
    peer: Peer, mix: Mix, scripted_request: ScriptedRequest, head: ReceivedRequest, nth: int
) -> None:
    arrival = scripted_request.arrived(nth)
    conduct = arrival.conduct
    if not conduct.early:
        arrival.request = await peer.with_body(head)
        assert not peer.unread, "more than one request"
    if not conduct.lasting:
        mix.end(peer)
    await conduct.act(peer)
    if not conduct.lasting:
        await peer.wait_until_gone()
        raise PeerGone  # and anything that has arrived since was not received
    if conduct.early:
        arrival.request = await peer.with_body(head)
    mix.may_rest(peer, conduct)


async def complaints_about(mix: Mix, trusting: ssl.SSLContext, port: int) -> list[str]:
    try:
        with sender(POLICY, trusting, mix.most_idle, DrawnResolver()) as client:
            await mix.run(client, port)
    except Exception as error:  # noqa: BLE001 - with the seed beside it, among all others
        mix.troubles.append(repr(error))
    complaints = mix.troubles + mix.complaints(port)
    complaints += [
        f"too large: {scripted_request}"
        for scripted_request in mix.scripted_requests()
        if is_too_large(scripted_request)
    ]
    if complaints:
        return [
            f"mix {mix.seed}: {replay(mix.seed, 1)}",
            *complaints,
            *map(str, mix.scripted_requests()),
        ]
    return []


def is_too_large(scripted_request: ScriptedRequest) -> bool:
    exchange = scripted_request.exchange
    if exchange is None:
        return False
    size = sum(len(name) + len(value) for name, value in exchange.headers) + len(exchange.body)
    too_many = len(exchange.headers) > MOST_HEADERS or len(exchange.body) > BODY_KEPT
    return too_many or size > LARGEST_ANSWER


def replay(first: int, mixes: int) -> str:
    return f"CUEPOST_TEST_HOSTILE_FIRST={first} CUEPOST_TEST_HOSTILE_MIXES={mixes}"


def is_over(connection: HttpConnection) -> bool:
    return not (connection.usable or connection._timer or connection._done)


def left_by(mixes: Sequence[Mix], sockets: int, tasks: set[asyncio.Task[Any]]) -> list[str]:
    left = [replay(mix.seed, 1) for mix in mixes if not all(map(is_over, mix.connections))]
    left += [repr(task) for task in asyncio.all_tasks() - tasks]
    if (found := open_sockets()) > sockets:
        left.append(f"{found - sockets} sockets: {replay(mixes[0].seed, len(mixes))}")
    return left


async def in_the_end(left: Callable[[], list[str]]) -> list[str]:
    """Closing takes the loop a round or two."""
    with suppress(TimeoutError):
        async with asyncio.timeout(LONGEST_END_SECONDS):
            while left():
                await asyncio.get_running_loop().run_in_executor(None, int)
    return left()


@pytest.mark.parametrize("first", range(FIRST, FIRST + MIXES, AT_ONCE))
async def test_every_exchange_of_a_mix_ends_as_it_has_to_and_leaves_nothing(
    first: int, certificates: Certificates, trusting: ssl.SSLContext
) -> None:
    mixes = [Mix(seed) for seed in range(first, min(first + AT_ONCE, FIRST + MIXES))]
    async with network(serving(mixes), certificates) as receivers:
        before = open_sockets()
        tasks = asyncio.all_tasks()
        with ConnectionRecord.kept() as destinations:
            every = (complaints_about(mix, trusting, receivers.port) for mix in mixes)
            complaints = list(chain.from_iterable(await asyncio.gather(*every)))
        assert not complaints, "\n".join(complaints)
        assert await in_the_end(lambda: left_by(mixes, before, tasks)) == []
        assert not receivers.denied.peers, replay(first, len(mixes))
    assert set(destinations) <= {(address, receivers.port) for address in ADDRESSES.values()}


def test_a_seed_draws_the_same_mix_again() -> None:
    first, again = (
        [scripted_request.drawn() for scripted_request in Mix(FIRST).scripted_requests()]
        for _ in range(2)
    )
    assert first == again
