"""An event loop for a virtual clock: the time jumps on whenever everybody waits for it."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor, Future
from typing import Any, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")


class Stuck(Exception):
    """Everybody waits, and for nothing that will ever come."""

    def __init__(self) -> None:
        super().__init__(type(self).__doc__)


class JumpingSelector(selectors.DefaultSelector):
    """Asked to wait while nothing real is awaited, it lets the virtual time jump instead."""

    def __init__(self, jump: Callable[[], bool], awaits_reality: Callable[[], bool]) -> None:
        super().__init__()
        self._jump = jump
        self._awaits_reality = awaits_reality

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        is_idle = timeout is None or timeout > 0
        if is_idle and not self._awaits_reality():
            if self._jump():
                timeout = 0
            elif timeout is None:
                raise Stuck
        return super().select(timeout)


class AtOnce(Executor):
    """Threads would end in another order at every run; here each call is done when it is asked."""

    def submit(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        done: Future[T] = Future()
        try:
            done.set_result(work(*args, **kwargs))
        except BaseException as error:  # noqa: BLE001  # whoever asked for it gets it
            done.set_exception(error)
        return done


def run_jumping(
    main: Coroutine[Any, Any, T],
    jump: Callable[[], bool],
    awaits_reality: Callable[[], bool] = lambda: False,
) -> T:
    def loop() -> asyncio.AbstractEventLoop:
        return asyncio.SelectorEventLoop(JumpingSelector(jump, awaits_reality))

    with asyncio.Runner(loop_factory=loop) as runner:
        return runner.run(main)
