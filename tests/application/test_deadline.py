"""A request is cut off in time, and what is said of its changes is true."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from cuepost.adapters.system_clock import SystemClock
from cuepost.application.admission import RequestDeadline
from cuepost.application.retry_after import retry_after
from cuepost.domain.project import Project
from cuepost.ports.saving import track_saving
from cuepost.ports.store import (
    Action,
    CommitUnknown,
    Contention,
    Priority,
    Store,
    StoreUnavailable,
    Transaction,
)
from cuepost.testing import RepeatableEntropy
from tests.application.harness import RULES, Harness

SHORT = 0.05
LONG = 20.0


async def hang() -> None:
    await asyncio.Event().wait()


async def saved(store: Store) -> None:
    async with store.transaction():
        pass


async def told_of(work: Callable[[], Awaitable[Any]], seconds: float = SHORT) -> type[Exception]:
    with pytest.raises(StoreUnavailable) as reported, RequestDeadline(seconds):
        await work()
    return type(reported.value)


async def test_who_is_cut_off_before_anything_was_saved_has_changed_nothing(
    harness: Harness,
) -> None:
    async def waits() -> None:
        async with harness.store.transaction():
            await hang()

    assert await told_of(waits) is StoreUnavailable


async def test_who_is_cut_off_after_a_commit_may_have_changed_something(harness: Harness) -> None:
    async def waits() -> None:
        await saved(harness.store)
        await hang()

    assert await told_of(waits, 1.0) is CommitUnknown


@pytest.mark.parametrize("error", [StoreUnavailable("away"), Contention("in the way")])
async def test_any_failure_after_a_commit_is_told_alike(harness: Harness, error: Exception) -> None:
    async def fails() -> None:
        await saved(harness.store)
        raise error

    assert await told_of(fails, LONG) is CommitUnknown


async def test_a_commit_that_failed_has_changed_nothing(harness: Harness) -> None:
    async def fails() -> None:
        with suppress(ZeroDivisionError):
            async with harness.store.transaction():
                raise ZeroDivisionError
        raise StoreUnavailable("away")

    assert await told_of(fails, LONG) is StoreUnavailable


async def test_what_the_caller_did_not_ask_for_does_not_count(harness: Harness) -> None:
    async def fails() -> None:
        with track_saving(None):
            await saved(harness.store)
        raise StoreUnavailable("away")

    assert await told_of(fails, LONG) is StoreUnavailable


async def test_the_time_of_the_client_does_not_count(sqlite_harness: Harness) -> None:
    with RequestDeadline(SHORT) as deadline:
        await deadline.excluding(SystemClock().wait(3 * SHORT))


@pytest.mark.parametrize("pause", [SHORT / 5, 3 * SHORT], ids=["short", "longer than the limit"])
async def test_after_a_pause_the_rest_of_the_time_is_left(pause: float) -> None:
    async def waits() -> None:
        with RequestDeadline(SHORT) as deadline:
            await deadline.excluding(SystemClock().wait(pause))
            await hang()

    loop = asyncio.get_running_loop()
    began = loop.time()
    with pytest.raises(StoreUnavailable):
        await waits()
    assert round(loop.time() - began, 3) >= round(SHORT + pause, 3)


async def test_a_request_that_others_cancel_stays_cancelled() -> None:
    async def waits() -> None:
        with RequestDeadline(LONG):
            await hang()

    async with asyncio.TaskGroup() as group:
        request = group.create_task(waits())
        await checkpoint()
        request.cancel()
    assert request.cancelled()


async def test_a_request_without_a_deadline_is_not_cut_off() -> None:
    with RequestDeadline(None) as deadline:
        await deadline.excluding(SystemClock().wait(SHORT))


async def test_other_timeouts_are_left_alone() -> None:
    async def waits() -> None:
        with RequestDeadline(LONG):
            raise TimeoutError("of something else")

    with pytest.raises(TimeoutError, match="of something else"):
        await waits()


class HeldStore:
    """Bookings wait until they are let go."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.may_go_on = asyncio.Event()
        self.begun = asyncio.Semaphore(0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def write(self, action: Action[Any], priority: Priority) -> Any:
        async def held(transaction: Transaction) -> Any:
            answer = await action(transaction)
            self.begun.release()
            await self.may_go_on.wait()
            return answer

        return await self._store.write(held, priority)


async def test_a_report_that_is_being_written_goes_on_and_one_that_waits_is_taken_out(
    postgres_harness: Harness,
) -> None:
    harness = postgres_harness
    held: Any = HeldStore(harness.store)
    service = replace(harness, store=held).reassembled(RULES).service
    projects = [await harness.project() for _ in range(3)]
    reported = [[harness.milestone(project)] for project in projects]

    async def told_in(seconds: float, place: int) -> type[Exception]:
        report = partial(service.milestones.report, harness.pipeline, reported[place])
        return await told_of(report, seconds)

    async with asyncio.timeout(LONG), asyncio.TaskGroup() as tasks:
        written = []
        for place in (0, 1):
            written.append(tasks.create_task(told_in(1.0, place)))
            await held.begun.acquire()
        # Both writers are busy, so the third one waits for its batch.
        assert await told_in(SHORT, 2) is StoreUnavailable
        assert [await each for each in written] == [CommitUnknown, CommitUnknown]
        held.may_go_on.set()
        while {await status_of(harness, each) for each in projects[:2]} != {"completed"}:
            await anyio.lowlevel.checkpoint()
    assert await status_of(harness, projects[2]) == "exporting"


async def status_of(harness: Harness, project: Project) -> str:
    return (await harness.stored(project)).status.value


def test_refused_callers_come_back_at_different_times() -> None:
    entropy = RepeatableEntropy()
    assert {retry_after(entropy) for _ in range(200)} == {1, 2, 3, 4, 5}
    assert {retry_after(entropy, 20) for _ in range(200)} == {20, 21, 22, 23, 24}
