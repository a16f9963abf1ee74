"""An event loop for a virtual clock: the time jumps on whenever everybody waits for it."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor, Future
from typing import Any, ParamSpec, TypeVar, TypeVarTuple

T = TypeVar("T")
P = ParamSpec("P")
Ts = TypeVarTuple("Ts")


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


class AtOnce(Executor):
    """Threads would end in another order at every run; here each call is done when it is asked."""

    def submit(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        done: Future[T] = Future()
        try:
            done.set_result(work(*args, **kwargs))
        except BaseException as error:  # noqa: BLE001  # the caller gets it
            done.set_exception(error)
        return done


class JumpingLoop(asyncio.SelectorEventLoop):
    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts
    ) -> "asyncio.Future[T]":
        """As ever, but what was done at once need not wake the loop up from another thread."""
        if not isinstance(executor, AtOnce):
            return super().run_in_executor(executor, func, *args)
        done = executor.submit(func, *args)
        answer: asyncio.Future[T] = self.create_future()
        self.call_soon(_settle, answer, done)
        return answer


def _settle(answer: "asyncio.Future[T]", done: "Future[T]") -> None:
    if answer.cancelled():
        return
    error = done.exception()
    if error is None:
        answer.set_result(done.result())
    else:
        answer.set_exception(error)


def run_jumping(
    main: Coroutine[Any, Any, T],
    jump: Callable[[], bool],
    awaits_reality: Callable[[], bool] | None = None,
) -> T:
    def loop() -> asyncio.AbstractEventLoop:
        return JumpingLoop(JumpingSelector(jump, awaits_reality))

    with asyncio.Runner(loop_factory=loop) as runner:
        return runner.run(main)
