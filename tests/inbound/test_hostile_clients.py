"""Hostile clients beside honest ones: what they cost, and that no other caller notices."""

import asyncio
import os
from pathlib import Path

import pytest

from cuepost.adapters.system_clock import SystemClock
from tests.inbound.guarded_server import Line, until
from tests.inbound.hostile_mix import mixed_attack
from tests.inbound.service_under_attack import (
    Attacked,
    Watch,
    attacked_service,
    flood,
    slowest,
)

MIB = 1_048_576
ENDLESS_HEADS = {
    "request line": (b"GET /", b"x" * 65_536),
    "one header": (b"GET / HTTP/1.1\r\nx-long: ", b"x" * 65_536),
    "header lines": (b"GET / HTTP/1.1\r\n", b"x-many: y\r\n" * 6_000),
}
HALF_HEAD = b"GET / HTTP/1.1\r\nhost: a\r\nx-half: "
# A machine that others use as well is late by as much now and then, attacked or not.
NOISE_SECONDS = 0.01
LONGEST_SECONDS = 3.0
ROUNDS = 5
PERIODS = int(os.environ.get("CUEPOST_TEST_ATTACK_PERIODS", "3"))
IDLE = int(os.environ.get("CUEPOST_TEST_IDLE_CONNECTIONS", "1500"))
MIXES = int(os.environ.get("CUEPOST_TEST_HOSTILE_CLIENT_MIXES", "3"))


async def compared(it: Attacked, kind: str) -> tuple[Watch, Watch]:
    """Calm and attacked periods by turns, so that both have the same neighbours."""
    calm, attacked = Watch(), Watch()
    beginning, endless = ENDLESS_HEADS[kind]
    for _ in range(PERIODS):
        await it.watch(1.0, calm)
        async with asyncio.TaskGroup() as group:
            group.create_task(it.watch(1.0, attacked))
            for _ in range(3):
                sent = await flood(it.port, beginning, endless, 32 * MIB)
                assert sent < 32 * MIB
    return calm, attacked


def is_unnoticed(calm: list[float], attacked: list[float]) -> bool:
    return slowest(attacked) <= max(1.5 * slowest(calm), slowest(calm) + NOISE_SECONDS)


@pytest.mark.parametrize("kind", ENDLESS_HEADS)
async def test_an_endless_head_costs_neither_memory_nor_time(tmp_path: Path, kind: str) -> None:
    async with attacked_service(tmp_path) as it:
        await flood(it.port, *ENDLESS_HEADS[kind], 32 * MIB)
        found = []
        for _ in range(ROUNDS):
            before = it.memory_bytes
            calm, attacked = await compared(it, kind)
            assert it.memory_bytes - before < 5 * MIB
            assert max(attacked.health) < LONGEST_SECONDS
            found.append((slowest(calm.health), slowest(attacked.health)))
            found.append((slowest(calm.deliveries), slowest(attacked.deliveries)))
            if is_unnoticed(calm.health, attacked.health) and is_unnoticed(
                calm.deliveries, attacked.deliveries
            ):
                break
        else:
            pytest.fail(f"the attack was noticed in each round: {found}")


async def test_half_sent_heads_are_closed_in_time(tmp_path: Path) -> None:
    async with attacked_service(tmp_path) as it:
        lines = [await Line.open(it.port) for _ in range(300)]
        for line in lines:
            await line.say(HALF_HEAD)
        async with asyncio.timeout(20):
            answers = await asyncio.gather(*(line.rest() for line in lines))
        assert {answer.split(b"\r\n")[0] for answer in answers} == {b"HTTP/1.1 408 Request Timeout"}
        assert await it.refusals() == {"head_timeout": 300}
        for line in lines:
            line.close()


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.9"], ids=["others", "the same"])
async def test_idle_connections_keep_no_client_out(tmp_path: Path, address: str) -> None:
    """Neither someone elsewhere, nor someone behind the same address."""
    async with attacked_service(tmp_path) as it:
        watch = Watch()
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(it.watch(4.0, watch))
            lines: list[Line] = []
            while len(lines) < IDLE:
                lines += await asyncio.gather(*(Line.open(it.port, address) for _ in range(50)))
            await watching
        assert len(watch.health) > 5
        refused = await it.refusals()
        assert refused["displaced"] >= IDLE - 512 - 1
        assert it.descriptors < 700
        for line in lines:
            line.close()


@pytest.mark.parametrize("seed", range(MIXES))
async def test_a_mix_of_hostile_clients_leaves_nothing_behind(tmp_path: Path, seed: int) -> None:
    quick = {"HEAD_TIMEOUT": "1", "BODY_TIMEOUT": "1", "ANSWER_TIMEOUT": "1"}
    async with attacked_service(tmp_path, **quick) as it:
        await mixed_attack(it.port, -seed - 1)
        await SystemClock().wait(2)
        before, descriptors = it.memory_bytes, it.descriptors
        watch = Watch()
        async with asyncio.TaskGroup() as group:
            group.create_task(it.watch(3.0, watch))
            await mixed_attack(it.port, seed)
        assert len(watch.health) > 5
        await until(lambda: it.descriptors <= descriptors + 5)
        assert it.memory_bytes - before < 20 * MIB
        ended = it.service.stop()
        assert ended.code == 0
        assert "Traceback" not in ended.stderr
