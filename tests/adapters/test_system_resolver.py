"""The operating system's resolver: shared look-ups, no thread that holds anybody up."""

import asyncio
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address
from threading import Event
from typing import Any

import pytest

from cuepost.adapters.system_resolver import SystemResolver
from cuepost.ports.transport import CannotResolve

ADDRESS = IPv4Address("192.0.2.1")


class FakeSystem:
    """Names that begin with `hanging` are answered when `released`."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.released = Event()
        self.answers: dict[str, list[str] | Exception] = {}

    def getaddrinfo(self, host: str, port: None, **_: object) -> list[Any]:
        self.asked[host] += 1
        if host.startswith("hanging"):
            assert self.released.wait(10)
        answer = self.answers.get(host, [str(ADDRESS)])
        if isinstance(answer, Exception):
            raise answer
        return [(0, 0, 0, "", (text, 0)) for text in answer]


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeSystem]:
    fake = FakeSystem()
    monkeypatch.setattr(socket, "getaddrinfo", fake.getaddrinfo)
    yield fake
    fake.released.set()


async def test_the_real_system_knows_this_machine() -> None:
    found = await SystemResolver().addresses("localhost")
    assert set(found) <= {IPv4Address("127.0.0.1"), IPv6Address("::1")}
    assert found


async def test_every_address_is_given_once_in_the_order_of_the_system(system: FakeSystem) -> None:
    system.answers["a.example"] = ["2001:db8::1", "192.0.2.1", "2001:db8::1", "fe80::1%eth0"]
    found = await SystemResolver().addresses("a.example")
    assert found == tuple(map(ip_address, ("2001:db8::1", "192.0.2.1", "fe80::1%eth0")))


@pytest.mark.parametrize(
    "answer",
    [socket.gaierror(-2, "no"), OSError(), UnicodeError("label too long"), [], ["no address"]],
)
async def test_an_error_and_an_odd_answer_are_no_answer(
    answer: list[str] | Exception, system: FakeSystem
) -> None:
    system.answers["a.example"] = answer
    with pytest.raises(CannotResolve):
        await SystemResolver().addresses("a.example")


async def test_concurrent_callers_share_a_look_up(system: FakeSystem) -> None:
    resolver = SystemResolver()
    async with asyncio.TaskGroup() as group:
        asking = [group.create_task(resolver.addresses("hanging.example")) for _ in range(50)]
        assert await resolver.addresses("other.example") == (ADDRESS,)
        system.released.set()
    assert [task.result() for task in asking] == [(ADDRESS,)] * 50
    assert system.asked == {"hanging.example": 1, "other.example": 1}
    # Nothing is remembered: the next connection is looked up again.
    await resolver.addresses("other.example")
    assert system.asked["other.example"] == 2


async def test_one_that_gives_up_does_not_take_the_answer_from_the_others(
    system: FakeSystem,
) -> None:
    resolver = SystemResolver()
    async with asyncio.TaskGroup() as group:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(resolver.addresses("hanging.example"), 0.05)
        asking = group.create_task(resolver.addresses("hanging.example"))
        await asyncio.wait([asking], timeout=0.05)
        system.released.set()
    assert asking.result() == (ADDRESS,)
    assert system.asked == {"hanging.example": 1}


async def test_names_wait_their_turn_when_all_threads_hang(system: FakeSystem) -> None:
    resolver = SystemResolver(most_at_once=2)
    async with asyncio.TaskGroup() as group:
        asking = [
            group.create_task(resolver.addresses(name))
            for name in ("hanging1.example", "hanging2.example", "other.example")
        ]
        await asyncio.wait(asking, timeout=0.1)
        assert "other.example" not in system.asked
        system.released.set()
    assert [task.result() for task in asking] == [(ADDRESS,)] * 3


def test_an_answer_that_comes_after_the_loop_has_ended_is_dropped(system: FakeSystem) -> None:
    async def give_up() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(SystemResolver().addresses("hanging.example"), 0.05)

    asyncio.run(give_up())
    system.released.set()


def test_a_hanging_look_up_does_not_keep_the_process_from_ending() -> None:
    program = """
import asyncio, socket, threading
from cuepost.adapters.system_resolver import SystemResolver
socket.getaddrinfo = lambda *_, **__: threading.Event().wait()
try:
    asyncio.run(asyncio.wait_for(SystemResolver().addresses("a.example"), 0.1))
except TimeoutError:
    print("given up")
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True
    )
    assert ended.stdout == "given up\n"
