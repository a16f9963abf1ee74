"""Calls that come together are carried out together, and each gets what is its own."""

import asyncio
from collections.abc import Sequence

import pytest
from anyio.lowlevel import checkpoint

from cuepost.application.gathering import Gathering
from cuepost.ports.store import StoreUnavailable


class Work:
    """Adds up what it gets, once it is let go; a number below zero is more than it can bear."""

    def __init__(self) -> None:
        self.done: list[tuple[str, list[int]]] = []
        self.may_go_on = asyncio.Event()
        self.failure: Exception | None = None

    async def __call__(self, key: str, items: Sequence[int]) -> list[int]:
        await self.may_go_on.wait()
        self.done.append((key, list(items)))
        if self.failure is not None:
            raise self.failure
        if min(items) < 0:
            raise ArithmeticError(min(items))
        return list(items)


async def results(work: Work, *calls: asyncio.Task[list[int]]) -> list[list[int] | BaseException]:
    await checkpoint()
    work.may_go_on.set()
    return await asyncio.gather(*calls, return_exceptions=True)


async def test_what_comes_meanwhile_is_done_together_afterwards() -> None:
    work = Work()
    gathering = Gathering(work, most=10)
    async with asyncio.TaskGroup() as tasks:
        calls = [tasks.create_task(gathering.do("a", [number])) for number in (1, 2, 3)]
        assert await results(work, *calls) == [[1], [2, 3], [2, 3]]
    assert work.done == [("a", [1]), ("a", [2, 3])]


async def test_another_key_does_not_wait() -> None:
    work = Work()
    gathering = Gathering(work, most=10)
    async with asyncio.TaskGroup() as tasks:
        calls = [tasks.create_task(gathering.do(key, [1])) for key in ("a", "b")]
        await results(work, *calls)
    assert work.done == [("a", [1]), ("b", [1])]


async def test_a_group_has_no_more_items_than_it_may() -> None:
    work = Work()
    gathering = Gathering(work, most=3)
    async with asyncio.TaskGroup() as tasks:
        calls = [tasks.create_task(gathering.do("a", items)) for items in ([0], [1, 2], [3], [4])]
        assert await results(work, *calls) == [[0], [1, 2, 3], [1, 2, 3], [4]]


async def test_one_call_alone_may_have_more() -> None:
    work = Work()
    work.may_go_on.set()
    assert await Gathering(work, most=1).do("a", [1, 2, 3]) == [1, 2, 3]


async def test_when_the_store_fails_all_of_the_group_hear_of_it() -> None:
    work = Work()
    work.failure = StoreUnavailable("away")
    gathering = Gathering(work, most=10)
    calls = [asyncio.ensure_future(gathering.do("a", [number])) for number in (1, 2, 3)]
    assert await results(work, *calls) == [work.failure] * 3
    assert work.done == [("a", [1]), ("a", [2, 3])]


async def test_a_call_that_cannot_be_carried_out_does_not_hurt_the_others() -> None:
    work = Work()
    gathering = Gathering(work, most=10)
    calls = [asyncio.ensure_future(gathering.do("a", [number])) for number in (0, 1, -2, 3)]
    _, first, second, third = await results(work, *calls)
    assert (first, third) == ([1], [3])
    assert isinstance(second, ArithmeticError)


async def test_a_leader_that_is_cancelled_leaves_the_work_to_the_next() -> None:
    work = Work()
    gathering = Gathering(work, most=10)
    leader, *others = [asyncio.ensure_future(gathering.do("a", [each])) for each in (1, 2, 3)]
    await checkpoint()
    leader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leader
    assert await results(work, *others) == [[2, 3], [2, 3]]


async def test_nothing_is_kept_of_keys_that_are_done_with() -> None:
    work = Work()
    work.may_go_on.set()
    gathering = Gathering(work, most=10)
    keys = [f"key {number}" for number in range(100)]
    for key in keys:
        await gathering.do(key, [0])
    assert not any(gathering.is_busy_with(key) for key in keys)
