"""On SIGUSR2 a process prints what it is doing: the state of its engine, and where each task waits.

The output goes to standard error, like the log. It has names and places in the code, but no values.
"""

import asyncio
import logging
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from cuepost.bootstrap.delivery import Delivery
from cuepost.engine import watchdog


@contextmanager
def showing_state(delivery: Delivery | None) -> Iterator[None]:
    loop = asyncio.get_running_loop()

    def show() -> None:
        for handler in logging.getLogger().handlers:
            handler.flush()
        sys.stderr.write("\n".join(described(delivery)) + "\n")
        sys.stderr.flush()

    loop.add_signal_handler(signal.SIGUSR2, show)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGUSR2)


def described(delivery: Delivery | None) -> Iterator[str]:
    if delivery is not None:
        stalled = delivery.watchdog.stalled or "no"
        state = watchdog.described(delivery.dispatcher)
        yield f'event=engine_state stalled="{stalled}" {state}'
    tasks = asyncio.all_tasks()
    yield f"event=tasks count={len(tasks)}"
    for task in sorted(tasks, key=lambda each: each.get_name()):
        places = " > ".join(_places(task.get_coro()))
        yield f'event=task name="{task.get_name()}" at="{places}"'


def _places(waiting: Any) -> Iterator[str]:
    """The places in the code from the outermost call to what it waits for."""
    while waiting is not None:
        code, frame = _running(waiting)
        if code is None:
            yield type(waiting).__name__
            return
        line = "" if frame is None else f":{frame.f_lineno}"
        yield f"{Path(code.co_filename).name}{line} {code.co_qualname}"
        waiting = _awaited(waiting)


def _running(waiting: Any) -> tuple[CodeType | None, FrameType | None]:
    """The code and frame of a coroutine or generator, plain or asynchronous."""
    for prefix in ("cr", "ag", "gi"):
        code = getattr(waiting, f"{prefix}_code", None)
        if code is not None:
            return code, getattr(waiting, f"{prefix}_frame")
    return None, None


def _awaited(waiting: Any) -> Any:
    for name in ("cr_await", "ag_await", "gi_yieldfrom"):
        if hasattr(waiting, name):
            return getattr(waiting, name)
    return None
