"""Milestones are written in batches, and a caller that is cancelled leaves none behind."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import cast
from uuid import UUID

from anyio.lowlevel import checkpoint

from cuepost.application.milestone_batch import Milestone
from cuepost.application.milestone_batcher import (
    BATCHES_AT_ONCE,
    Answers,
    Entry,
    MilestoneBatcher,
)
from cuepost.domain.event import SilenceReason
from cuepost.domain.project import ProjectStatus
from cuepost.ports.records import ReportAnswer
from cuepost.ports.store import Action, Priority, Store, Transaction
from cuepost.tuning import MILESTONES_AT_ONCE, MILESTONES_WHILE_FREE
from tests.application.harness import Harness

PATIENCE_SECONDS = 10


def entry(name: str) -> Entry:
    return Entry(Milestone(name, UUID(int=1), ProjectStatus.COMPLETED), b"")


def answers_to(entries: Sequence[Entry]) -> Answers:
    reason = SilenceReason.NOT_SUBSCRIBED
    return {
        each: ReportAnswer(each.milestone.report_id, True, None, False, reason) for each in entries
    }


async def let_others_run() -> None:
    for _ in range(20):
        await checkpoint()


async def test_a_caller_after_a_batch_whose_callers_were_cancelled_is_answered(
    harness: Harness,
) -> None:
    begun, free = asyncio.Event(), asyncio.Event()

    async def write_batch(
        transaction: Transaction, entries: Sequence[Entry], *, skip_locked: bool
    ) -> Answers:
        begun.set()
        await free.wait()
        return answers_to(entries)

    batcher = MilestoneBatcher(harness.service.perform, write_batch)
    full = [entry(str(number)) for number in range(MILESTONES_AT_ONCE)]
    async with asyncio.timeout(PATIENCE_SECONDS):
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(batcher.submit([entry("in the first batch")]))
            await begun.wait()
            tasks.create_task(batcher.submit(full))
            cancelled = tasks.create_task(batcher.submit([entry("in the third batch")]))
            await let_others_run()
            cancelled.cancel()
            free.set()
        await let_others_run()
        later = entry("later")
        assert later in await batcher.submit([later])


async def test_large_requests_are_written_at_the_same_time_and_small_ones_together(
    harness: Harness,
) -> None:
    written: list[int] = []
    free = asyncio.Event()

    async def write_batch(
        transaction: Transaction, entries: Sequence[Entry], *, skip_locked: bool
    ) -> Answers:
        written.append(len(entries))
        await free.wait()
        return answers_to(entries)

    perform = replace(harness.service.perform, store=cast("Store", _OpenStore()))
    batcher = MilestoneBatcher(perform, write_batch)

    async def report(*counts: int) -> None:
        written.clear()
        free.clear()
        async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as tasks:
            for count in counts:
                tasks.create_task(batcher.submit([entry(str(each)) for each in range(count)]))
            await let_others_run()
            free.set()

    large = MILESTONES_WHILE_FREE
    await report(large, large, large, large)
    # No third can be written, so the others join the second, which has not begun yet.
    assert written == [large, 3 * large]
    await report(*[1] * large)
    assert written == [large]


class _OpenStore:
    """A store whose writes end as soon as their actions do, so that several end together."""

    async def write(self, action: Action[Answers], _: Priority) -> Answers:
        return await action(cast("Transaction", None))


async def test_callers_right_after_batches_that_end_together_are_answered(
    harness: Harness,
) -> None:
    """No writer is left then, although the event loop has not yet called back for their ends."""
    begun, free = asyncio.Semaphore(0), asyncio.Event()

    async def write_batch(
        transaction: Transaction, entries: Sequence[Entry], *, skip_locked: bool
    ) -> Answers:
        begun.release()
        await free.wait()
        return answers_to(entries)

    perform = replace(harness.service.perform, store=cast("Store", _OpenStore()))
    batcher = MilestoneBatcher(perform, write_batch)

    async def report_twice(name: str) -> None:
        await batcher.submit([entry(name)])
        again = entry(f"{name} again")
        assert again in await batcher.submit([again])

    async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as tasks:
        for number in range(BATCHES_AT_ONCE):
            tasks.create_task(report_twice(str(number)))
            await begun.acquire()
        free.set()
