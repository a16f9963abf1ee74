"""An event loop for a virtual clock: the time jumps on whenever everybody waits for it."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from cuepost.adapters.work_threads import WorkThreads

T = TypeVar("T")


class Stuck(Exception):
    """Everybody waits, and for nothing that will ever come."""

    def __init__(self) -> None:
        super().__init__(type(self).__doc__)


class JumpingSelector(selectors.DefaultSelector):
    """Asked to wait while nothing real is awaited, it lets the virtual time jump instead.

    Where reality never matters, no one looks for it either.
    """

    def __init__(
        self, jump: Callable[[], bool], awaits_reality: Callable[[], bool] | None = None
    ) -> None:
        super().__init__()
        self._jump = jump
        self._awaits_reality = awaits_reality

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        is_idle = timeout is None or timeout > 0
        if is_idle and not (self._awaits_reality and self._awaits_reality()):
            if self._jump():
                timeout = 0
            elif timeout is None:
                raise Stuck
        if timeout == 0 and self._awaits_reality is None:
            return []
        return super().select(timeout)


class AtOnce(WorkThreads):
    """Threads would end in another order at every run; here each call is done when it is asked."""

    def __init__(self) -> None:
        super().__init__(0, "none")

    def run(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        try:
            made = work()
        except BaseException as error:  # noqa: BLE001  # the caller gets it
            answer.set_exception(error)
        else:
            answer.set_result(made)
        return answer


def run_jumping(
    main: Coroutine[Any, Any, T],
    jump: Callable[[], bool],
    awaits_reality: Callable[[], bool] | None = None,
) -> T:
    def loop() -> asyncio.AbstractEventLoop:
        return asyncio.SelectorEventLoop(JumpingSelector(jump, awaits_reality))

    with asyncio.Runner(loop_factory=loop) as runner:
        return runner.run(main)
