"""Work in other threads, as the embedded store has it done."""

import asyncio
import gc
import threading
import weakref
from collections.abc import Iterator

import anyio.lowlevel
import pytest

from cuepost.adapters.work_threads import WorkThreads

MOST = 3
SECONDS = 20.0


@pytest.fixture
def threads() -> Iterator[WorkThreads]:
    made = WorkThreads(MOST, "tried")
    yield made
    made.close()


def running() -> int:
    return sum(each.name == "tried" for each in threading.enumerate())


async def test_the_loop_continues_while_a_thread_works(threads: WorkThreads) -> None:
    go_on, loop_thread = threading.Event(), threading.get_ident()

    def work() -> int:
        assert go_on.wait(SECONDS)
        return threading.get_ident()

    answer = threads.run(work)
    await anyio.lowlevel.checkpoint()
    assert not answer.done()
    go_on.set()
    assert await answer != loop_thread


async def test_an_error_reaches_the_caller(threads: WorkThreads) -> None:
    def work() -> None:
        raise KeyError("gone")

    with pytest.raises(KeyError, match="gone"):
        await threads.run(work)
    assert await threads.run(lambda: "still served") == "still served"


async def test_there_are_no_more_threads_than_work_or_than_allowed(threads: WorkThreads) -> None:
    for _ in range(2 * MOST):
        await threads.run(lambda: None)
    assert running() == 1
    go_on = threading.Event()
    answers = [threads.run(lambda: go_on.wait(SECONDS)) for _ in range(2 * MOST)]
    assert running() == MOST
    go_on.set()
    assert await asyncio.gather(*answers) == [True] * 2 * MOST


async def test_cancelled_work_does_not_begin(threads: WorkThreads) -> None:
    go_on, begun = threading.Event(), []
    busy = [threads.run(lambda: go_on.wait(SECONDS)) for _ in range(MOST)]
    cancelled = threads.run(lambda: begun.append("cancelled"))
    last = threads.run(lambda: begun.append("last"))
    cancelled.cancel()
    go_on.set()
    await asyncio.gather(*busy, last)
    assert begun == ["last"]


async def test_work_that_has_begun_is_not_stopped_by_a_cancellation(threads: WorkThreads) -> None:
    begun, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        assert go_on.wait(SECONDS)
        ended.set()

    answer = threads.run(work)
    await asyncio.to_thread(begun.wait, SECONDS)
    answer.cancel()
    go_on.set()
    await threads.run(lambda: None)
    assert await asyncio.to_thread(ended.wait, SECONDS)


async def test_a_thread_that_waits_keeps_nothing_alive(threads: WorkThreads) -> None:
    class Rows:
        def count(self) -> int:
            return 3

    rows = Rows()
    seen = weakref.ref(rows)
    assert await threads.run(rows.count) == 3
    del rows
    # The thread forgets its task a moment after it has reported the result.
    for _ in range(1_000):
        gc.collect()
        if seen() is None:
            break
        await threads.run(lambda: None)
    assert seen() is None


async def test_work_after_closing_gets_a_new_thread(threads: WorkThreads) -> None:
    assert await threads.run(lambda: 1) == 1
    threads.close()
    assert running() == 0
    assert await threads.run(lambda: 2) == 2


def test_closing_waits_for_the_work() -> None:
    threads, done = WorkThreads(MOST, "tried"), []

    async def begin() -> None:
        threads.run(lambda: done.append(threading.Event().wait(0.05)))

    asyncio.run(begin())
    threads.close()
    assert len(done) == 1
    assert running() == 0
