"""Idle connections make room, requests in progress do not, and one client's limit is its own."""

import re
from ipaddress import ip_network

import pytest

from cuepost.bootstrap.inbound_guard import InboundLimits, Refusal
from tests.inbound.guarded_server import GuardedServer, Line, guarded_server, status_in, until

FEW = InboundLimits(client_connections=5, connections=100)
FEW_IN_ALL = InboundLimits(client_connections=100, connections=5)
GET = b"GET / HTTP/1.1\r\n\r\n"
HELD = b"GET /held HTTP/1.1\r\n\r\n"


async def opened(server: GuardedServer, count: int, said: bytes = b"") -> list[Line]:
    """Each of them is known to the server before the next one comes."""
    [guard] = server.metrics.guards
    lines: list[Line] = []

    def known() -> int:
        return guard.open_connections + sum(server.refusals.values())

    before = known()
    for _ in range(count):
        lines.append(await Line.open(server.port))
        await lines[-1].say(said)
        # Whichever makes room is counted among the refusals then.
        await until(lambda: known() == before + len(lines))
        if said == HELD:
            await until(lambda: server.held == len(lines))
    return lines


@pytest.mark.parametrize("limits", [FEW, FEW_IN_ALL], ids=["of one client", "in all"])
async def test_idle_connections_make_room_for_new_ones(limits: InboundLimits) -> None:
    async with guarded_server(limits) as server:
        idle = await opened(server, 20)
        await idle[-1].say(GET)
        assert await idle[-1].status() == 200
        assert server.refusals == {Refusal.DISPLACED: 15}
        # Those that had waited longest went first.
        assert [await line.rest() for line in idle[:15]] == [b""] * 15
        for line in idle:
            line.close()


@pytest.mark.parametrize(
    ("limits", "reason"),
    [(FEW, Refusal.CLIENT_CONNECTIONS), (FEW_IN_ALL, Refusal.ALL_CONNECTIONS)],
    ids=["of one client", "in all"],
)
async def test_requests_in_progress_are_never_given_up_for_new_ones(
    limits: InboundLimits, reason: Refusal
) -> None:
    async with guarded_server(limits) as server:
        busy = await opened(server, 5, HELD)
        late = await Line.open(server.port)
        answer = await late.rest()
        assert status_in(answer) == 503
        assert re.search(rb"\r\nretry-after: [1-5]\r\n", answer)
        assert server.refusals == {reason: 1}

        server.release.set()
        for line in busy:
            assert await line.status() == 200
            line.close()
        late.close()


async def test_a_client_at_its_limit_takes_nothing_from_another() -> None:
    async with guarded_server(FEW) as server:
        busy = await opened(server, 5, HELD)
        other = await Line.open(server.port, "127.0.0.2")
        await other.say(GET)
        assert await other.status() == 200
        assert server.refusals == {}
        for line in (*busy, other):
            line.close()


async def test_a_connection_that_is_used_again_and_again_is_not_the_one_that_makes_room() -> None:
    async with guarded_server(FEW) as server:
        [used], idle = await opened(server, 1), []
        for _ in range(20):
            await used.say(GET)
            assert await used.status() == 200
            idle += await opened(server, 1)
        assert server.refusals[Refusal.DISPLACED] > 10
        await used.say(GET)
        assert await used.status() == 200
        for line in (used, *idle):
            line.close()


async def test_a_trusted_proxy_has_no_limit_of_its_own_and_names_the_client() -> None:
    trusted = (ip_network("127.0.0.1/32"),)
    limits = InboundLimits(client_connections=1, trusted_proxies=trusted)
    forwarded = b"x-forwarded-for: 192.0.2.1, 198.51.100.7\r\n\r\n"
    async with guarded_server(limits) as server:
        lines = await opened(server, 3, HELD)
        for address in ("127.0.0.1", "127.0.0.2"):
            line = await Line.open(server.port, address)
            await line.say(b"GET / HTTP/1.1\r\n" + forwarded)
            assert await line.status() == 200
            line.close()
        assert [client for _, _, client in server.seen] == ["198.51.100.7", "127.0.0.2"]
        assert server.refusals == {}
        for line in lines:
            line.close()


def test_half_of_the_descriptors_are_left_to_deliveries_and_the_store() -> None:
    assert InboundLimits(connections=1_000_000_000).most_connections < 1_000_000_000
