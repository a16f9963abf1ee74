"""No connection is ever opened to an address that the policy denies, seen at the socket."""

import asyncio
from ipaddress import IPv6Address, ip_network
from time import perf_counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuepost.adapters.guarded_dialler import MOST_TRIED_OF_A_FAMILY
from cuepost.adapters.guarded_transport import Unusable
from cuepost.domain.attempt import Outcome, Timings
from cuepost.domain.egress_policy import EgressPolicy
from cuepost.domain.receiver_url import parse_receiver_url
from cuepost.ports.transport import CannotResolve, Exchange, Request
from tests.adapters.sender import (
    ANY_PORT,
    BODY,
    HEADERS,
    LATE_SECONDS,
    Answers,
    ConnectionRecord,
    StubResolver,
    ended_after,
    loopback_policy,
    sender,
)
from tests.support.fault_server import (
    Peer,
    answering,
    answering_once,
    fault_server,
    full_backlog,
    silence,
    unused_port,
)

NAME = "receiver.example"
ALLOWED = ("127.0.0.1", "127.0.0.3")
DENIED = ("127.0.0.2", "10.0.0.1", "169.254.169.254", "::1", "::ffff:127.0.0.1", "fd00::1")
SHORT_SECONDS = 0.3


@pytest.mark.parametrize(
    "answers",
    [
        ["127.0.0.2"],
        ["127.0.0.1", "127.0.0.2"],
        ["127.0.0.2", "127.0.0.1"],
        ["127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.2"],
        ["127.0.0.1", "169.254.169.254"],
        ["127.0.0.1", "::ffff:127.0.0.1"],
        ["127.0.0.1", "fe80::1%1"],
        ["0.0.0.0"],
    ],
)
async def test_one_denied_address_among_the_answers_is_enough(answers: list[str]) -> None:
    async with fault_server(silence, "127.0.0.2") as denied:
        with sender() as client, ConnectionRecord.kept() as destinations:
            client.resolver.answers[NAME] = [answers]
            fault = await client.fault(f"http://{NAME}:{denied.port}/")
    assert fault is Outcome.BLOCKED_DESTINATION
    assert destinations == []
    assert not denied.peers


@pytest.mark.parametrize("host", ["127.0.0.2", "10.0.0.1", "[::1]", "[::ffff:127.0.0.1]"])
async def test_a_denied_literal_is_blocked_at_the_connection_too(host: str) -> None:
    async with fault_server(silence, "127.0.0.2") as denied:
        with sender() as client, ConnectionRecord.kept() as destinations:
            fault = await client.fault(f"http://{host}:{denied.port}/")
    assert fault is Outcome.BLOCKED_DESTINATION
    assert destinations == []
    assert not denied.peers


async def test_a_scope_id_is_denied_even_where_its_network_is_opened() -> None:
    class Scoped(StubResolver):
        async def addresses(self, host: str) -> list[IPv6Address]:
            return [IPv6Address("fe80::1%1")]

    policy = loopback_policy("fe80::/10")
    with sender(policy, resolver=Scoped()) as client, ConnectionRecord.kept() as destinations:
        assert await client.fault(f"http://{NAME}/") is Outcome.BLOCKED_DESTINATION
    assert destinations == []


@pytest.mark.parametrize(
    ("policy", "url"),
    [
        (EgressPolicy((ip_network("127.0.0.1/32"),), ANY_PORT), f"http://{NAME}:80/"),
        (EgressPolicy((ip_network("127.0.0.1/32"),)), f"https://{NAME}:8443/"),
    ],
)
async def test_scheme_and_port_are_judged_at_the_connection_too(
    policy: EgressPolicy, url: str
) -> None:
    with sender(policy) as client, ConnectionRecord.kept() as destinations:
        assert await client.fault(url) is Outcome.BLOCKED_DESTINATION
    assert destinations == []
    assert not client.resolver.look_ups


async def test_a_test_inbox_is_not_reached_over_the_network() -> None:
    prefix = "http://127.0.0.1:8000/inbox/"
    url = parse_receiver_url(f"{prefix}{'A' * 32}", EgressPolicy(inbox_prefix=prefix))
    request, ended = Request(url, HEADERS, BODY, SHORT_SECONDS), list[Exchange | None]()
    with sender() as client, ConnectionRecord.kept() as destinations:
        assert not client.transport.start(request, ended.append)
        exchange = await client.transport.send(request)
    assert exchange == Exchange(0.0, Timings(), Outcome.BLOCKED_DESTINATION)
    assert (destinations, ended) == ([], [])


@pytest.mark.parametrize(
    "answer", [CannotResolve(), OSError("resolv.conf is gone"), TimeoutError(), []]
)
async def test_a_look_up_without_an_answer_opens_nothing(answer: Answers) -> None:
    with sender() as client, ConnectionRecord.kept() as destinations:
        client.resolver.answers[NAME] = [answer]
        exchange = await client.post(f"http://{NAME}/")
    assert exchange == Exchange(0.0, Timings(), Outcome.BLOCKED_DESTINATION)
    assert client.reported == [Unusable.NOT_RESOLVED]
    assert destinations == []


@pytest.mark.parametrize(
    ("answer", "why"),
    [(CannotResolve(), Unusable.NOT_RESOLVED), (["10.0.0.1"], Unusable.BLOCKED)],
    ids=["no address", "a private address"],
)
async def test_names_that_cannot_be_used_look_alike_and_take_as_long(
    answer: Answers, why: Unusable
) -> None:
    with sender(unusable_seconds=0.2) as client:
        client.resolver.answers[NAME] = [answer]
        began = perf_counter()
        exchange = await client.post(f"http://{NAME}/")
        took = perf_counter() - began
    assert exchange == Exchange(200.0, Timings(), Outcome.BLOCKED_DESTINATION)
    # The loop's clock and this one may differ by a little.
    assert 0.19 <= took < 0.2 + LATE_SECONDS
    assert client.reported == [why]


async def test_a_hanging_look_up_is_a_timeout() -> None:
    with sender() as client, ConnectionRecord.kept() as destinations:
        client.resolver.answers[NAME] = [asyncio.Event()]
        exchange = await client.post(f"http://{NAME}/", SHORT_SECONDS)
    assert exchange.fault is Outcome.TIMEOUT
    assert ended_after(exchange, SHORT_SECONDS)
    assert destinations == []


async def test_a_hanging_look_up_holds_up_no_other() -> None:
    async with fault_server(answering()) as server:
        with sender() as client:
            client.resolver.answers["hanging.example"] = [asyncio.Event()]
            async with asyncio.TaskGroup() as group:
                url = f"http://hanging.example:{server.port}/"
                hanging = group.create_task(client.post(url))
                assert (await client.post(f"http://{NAME}:{server.port}/")).status == 200
                assert client.resolver.look_ups == {NAME: 1, "hanging.example": 1}
                assert not hanging.done()
                hanging.cancel()


async def test_each_new_connection_is_looked_up_once() -> None:
    async with fault_server(answering()) as server:
        with sender() as client:
            url = f"http://{NAME}:{server.port}/"
            for _ in range(3):
                await asyncio.gather(*[client.post(url) for _ in range(5)])
    assert len(server.peers) == 5
    assert client.resolver.look_ups == {NAME: 5}


async def test_a_name_that_is_rebound_between_attempts_is_blocked() -> None:
    answer = b"HTTP/1.1 500 Oops\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
    async with (
        fault_server(answering_once(answer)) as server,
        fault_server(silence, "127.0.0.2", server.port) as denied,
    ):
        with sender() as client, ConnectionRecord.kept() as destinations:
            client.resolver.answers[NAME] = [["127.0.0.1"], ["127.0.0.2"]]
            url = f"http://{NAME}:{server.port}/"
            assert (await client.post(url)).status == 500
            assert await client.fault(url) is Outcome.BLOCKED_DESTINATION
    assert destinations == [("127.0.0.1", server.port)]
    assert not denied.peers


async def test_a_name_that_is_rebound_does_not_move_an_open_connection() -> None:
    async def script(peer: Peer) -> None:
        for _ in range(2):
            await peer.request()
            peer.send(b"HTTP/1.1 204 No Content\r\n\r\n")
        # The third request finds it closed, and the replacement has to be looked up again.
        await peer.request()
        await peer.close()

    async with (
        fault_server(script) as server,
        fault_server(silence, "127.0.0.2", server.port) as denied,
    ):
        with sender() as client, ConnectionRecord.kept() as destinations:
            client.resolver.answers[NAME] = [["127.0.0.1"], ["127.0.0.2"]]
            url = f"http://{NAME}:{server.port}/"
            assert [(await client.post(url)).status for _ in range(2)] == [204, 204]
            assert await client.fault(url) is Outcome.BLOCKED_DESTINATION
    assert destinations == [("127.0.0.1", server.port)]
    assert not denied.peers


async def test_the_next_address_is_tried_when_one_refuses() -> None:
    policy = loopback_policy(*ALLOWED)
    async with fault_server(answering(), "127.0.0.3") as server:
        with sender(policy) as client, ConnectionRecord.kept() as destinations:
            client.resolver.answers[NAME] = [list(ALLOWED)]
            assert (await client.post(f"http://{NAME}:{server.port}/")).status == 200
    assert destinations == [(address, server.port) for address in ALLOWED]


async def test_an_address_that_swallows_packets_leaves_time_for_the_next() -> None:
    with full_backlog() as port, sender(loopback_policy(*ALLOWED)) as client:
        async with fault_server(answering(), "127.0.0.3", port):
            client.resolver.answers[NAME] = [list(ALLOWED)]
            exchange = await client.post(f"http://{NAME}:{port}/", 6.0)
    assert exchange.status == 200
    # A third of the time for each of the two, and one for the answer.
    assert exchange.timings.connect_ms is not None
    assert 1900 < exchange.timings.connect_ms < 4000


async def test_a_name_with_many_addresses_is_no_way_to_knock_on_all_of_them() -> None:
    mapped = [f"::ffff:127.0.1.{n}" for n in range(100)]
    plain = [f"127.0.1.{n}" for n in range(100)]
    policy = loopback_policy("127.0.1.0/24", "::ffff:127.0.1.0/120")
    with sender(policy) as client, ConnectionRecord.kept() as destinations:
        client.resolver.answers[NAME] = [mapped + plain]
        assert await client.fault(f"http://{NAME}:{unused_port()}/") is Outcome.CONNECT_ERROR
    families = ["IPv6" if ":" in host else "IPv4" for host, *_ in destinations]
    assert families == ["IPv6", "IPv4"] * MOST_TRIED_OF_A_FAMILY


@given(answers=st.lists(st.sampled_from(ALLOWED + DENIED), min_size=1, max_size=6))
@settings(max_examples=150)
def test_destinations_are_always_among_the_allowed(answers: list[str]) -> None:
    async def attempt() -> Outcome | None:
        with sender(loopback_policy(*ALLOWED)) as client:
            client.resolver.answers[NAME] = [answers]
            return await client.fault(f"http://{NAME}:{unused_port()}/")

    with ConnectionRecord.kept() as destinations:
        fault = asyncio.run(attempt())
    if set(answers) <= set(ALLOWED):
        assert fault is Outcome.CONNECT_ERROR
        assert {host for host, _ in destinations} <= set(ALLOWED)
    else:
        assert fault is Outcome.BLOCKED_DESTINATION
        assert destinations == []


async def test_nothing_of_addresses_or_resolvers_is_in_what_the_owner_sees() -> None:
    with sender() as client:
        port = unused_port()
        client.resolver.answers = {
            "refused.example": [["127.0.0.1"]],
            "denied.example": [["10.11.12.13"]],
            "unknown.example": [OSError("ns.internal said no to 10.11.12.13")],
        }
        shown = [
            repr(await client.post(f"http://{name}:{port}/")) for name in client.resolver.answers
        ]
    for text in shown:
        assert not any(word in text for word in ("127.0", "10.11", "internal", "example", "said"))
