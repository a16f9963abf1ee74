"""Calls that come while another one is being carried out are carried out together, after it.

So the busier it gets, the less each call costs; and nobody waits for company.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from cuepost.ports.store import Contention, StoreUnavailable

Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")
Answer = TypeVar("Answer")


@dataclass(slots=True, eq=False)
class _Call(Generic[Item, Answer]):
    items: Sequence[Item]
    answer: Answer | None = None
    failure: StoreUnavailable | Contention | None = None

    @property
    def is_over(self) -> bool:
        return self.answer is not None or self.failure is not None


@dataclass(slots=True)
class _Desk(Generic[Item, Answer]):
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    waiting: deque[_Call[Item, Answer]] = field(default_factory=deque)


class Gathering(Generic[Key, Item, Answer]):
    """`work` is done for one key at a time, on at most `most` items unless one call has more."""

    def __init__(self, work: Callable[[Key, Sequence[Item]], Awaitable[Answer]], most: int) -> None:
        self._work = work
        self._most = most
        self._desks: dict[Key, _Desk[Item, Answer]] = {}

    def is_busy_with(self, key: Key) -> bool:
        """Something is being done for it, or waits for that."""
        return key in self._desks

    def is_busy_beside(self, *keys: Key) -> bool:
        """Something is being done for others than these."""
        return any(key not in keys for key in self._desks)

    async def do(self, key: Key, items: Sequence[Item]) -> Answer:
        """The answer to the whole group in which these items were."""
        desk = self._desks.setdefault(key, _Desk())
        call: _Call[Item, Answer] = _Call(items)
        desk.waiting.append(call)
        try:
            async with desk.turn:
                if not call.is_over:
                    await self._lead(key, desk, call)
        finally:
            if call in desk.waiting:
                desk.waiting.remove(call)
            if not desk.waiting and self._desks.get(key) is desk:
                del self._desks[key]
        if call.failure is not None:
            raise call.failure
        assert call.answer is not None
        return call.answer

    async def _lead(self, key: Key, desk: _Desk[Item, Answer], call: _Call[Item, Answer]) -> None:
        group = self._group(desk, call)
        try:
            answer = await self._work(key, [item for each in group for item in each.items])
        except (StoreUnavailable, Contention) as failure:
            for each in group:
                each.failure = failure
        except Exception:
            # Whatever is wrong with one call is no matter of the others.
            if len(group) == 1:
                raise
            call.answer = await self._work(key, call.items)
        else:
            for each in group:
                each.answer = answer
        for each in group:
            if each.is_over:
                desk.waiting.remove(each)

    def _group(
        self, desk: _Desk[Item, Answer], call: _Call[Item, Answer]
    ) -> list[_Call[Item, Answer]]:
        group, room = [call], self._most - len(call.items)
        for each in desk.waiting:
            if each is call:
                continue
            room -= len(each.items)
            if room < 0:
                break
            group.append(each)
        return group
