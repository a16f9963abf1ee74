"""Threads for work that would block the event loop.

A call takes less than half of the CPU of one through an executor of the standard library, because
only the loop waits for its answer.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")
_Task = tuple[Callable[[], Any], asyncio.AbstractEventLoop, "asyncio.Future[Any]"]


class WorkThreads:
    """Threads are started when they are needed; a process that ends does not wait for them."""

    def __init__(self, most: int, name: str) -> None:
        self._most = most
        self._name = name
        self._threads: list[Thread] = []
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
        self._unfinished = 0

    def run(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        """Work that has begun continues if its future is cancelled."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        self._unfinished += 1
        if len(self._threads) < min(self._unfinished, self._most):
            thread = Thread(target=self._serve, name=self._name, daemon=True)
            self._threads.append(thread)
            thread.start()
        self._tasks.put((work, loop, answer))
        return answer

    def close(self) -> None:
        """Waits for all work."""
        for _ in self._threads:
            self._tasks.put(None)
        for thread in self._threads:
            thread.join()
        self._threads.clear()

    def _serve(self) -> None:
        while (task := self._tasks.get()) is not None:
            work, loop, answer = task
            made, error = None, None
            if not answer.cancelled():
                try:
                    made = work()
                except BaseException as caught:  # noqa: BLE001  # passed to the caller
                    error = caught
            # The loop may be closed by now.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._finish, answer, made, error)
            # What the work refers to does not stay in memory until the next.
            del task, work, loop, answer, made, error

    def _finish(
        self, answer: "asyncio.Future[Any]", made: object, error: BaseException | None
    ) -> None:
        self._unfinished -= 1
        if answer.cancelled():
            return
        if error is None:
            answer.set_result(made)
        else:
            answer.set_exception(error)
