"""Milestones are written in batches, and a caller that is cancelled leaves none behind."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast
from uuid import UUID

from anyio.lowlevel import checkpoint

from cuepost.application.milestone_batch import Milestone, MilestoneBatches
from cuepost.application.perform import Perform
from cuepost.application.report_milestones import BATCHES_AT_ONCE, Answers, ReportMilestones
from cuepost.domain.event import SilenceReason
from cuepost.domain.project import ProjectStatus
from cuepost.ports.records import ReportAnswer
from cuepost.ports.store import Action, Priority, Store, Transaction
from cuepost.testing import Factory, SequentialIds, VirtualClock
from cuepost.tuning import MILESTONES_AT_ONCE, MILESTONES_WHILE_FREE
from tests.application.harness import Harness

PATIENCE_SECONDS = 10


def milestone(name: str) -> Milestone:
    return Milestone(name, UUID(int=1), ProjectStatus.COMPLETED)


def answer_to(each: Milestone) -> ReportAnswer:
    return ReportAnswer(each.report_id, True, None, False, SilenceReason.NOT_SUBSCRIBED)


class Reports(ReportMilestones):
    """Calls `noted` with the size of each batch as it begins, and writes it once `free` is set."""

    def __init__(self, perform: Perform, noted: Callable[[int], object]) -> None:
        super().__init__(perform, MilestoneBatches(VirtualClock(), SequentialIds(), ""))
        self._noted = noted
        self.free = asyncio.Event()

    async def _write(self, waiting: Any, transaction: Transaction) -> Answers:
        waiting.is_open = False
        self._noted(len(waiting.entries))
        await self.free.wait()
        return {each: answer_to(each.milestone) for each in waiting.entries}

    async def submit(self, *milestones: Milestone) -> None:
        answers = await self.report(Factory.pipeline(), milestones)
        assert answers == list(map(answer_to, milestones))


async def let_others_run() -> None:
    for _ in range(20):
        await checkpoint()


async def test_a_caller_after_a_batch_whose_callers_were_cancelled_is_answered(
    harness: Harness,
) -> None:
    begun = asyncio.Event()
    reports = Reports(harness.service.perform, lambda _: begun.set())
    full = [milestone(str(number)) for number in range(MILESTONES_AT_ONCE)]
    async with asyncio.timeout(PATIENCE_SECONDS):
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(reports.submit(milestone("in the first batch")))
            await begun.wait()
            tasks.create_task(reports.submit(*full))
            cancelled = tasks.create_task(reports.submit(milestone("in the third batch")))
            await let_others_run()
            cancelled.cancel()
            reports.free.set()
        await let_others_run()
        await reports.submit(milestone("later"))


async def test_large_requests_are_written_at_the_same_time_and_small_ones_together(
    harness: Harness,
) -> None:
    written: list[int] = []
    perform = replace(harness.service.perform, store=cast("Store", _OpenStore()))
    reports = Reports(perform, written.append)

    async def report(*counts: int) -> None:
        written.clear()
        reports.free.clear()
        async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as tasks:
            for count in counts:
                tasks.create_task(reports.submit(*[milestone(str(each)) for each in range(count)]))
            await let_others_run()
            reports.free.set()

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
    begun = asyncio.Semaphore(0)
    perform = replace(harness.service.perform, store=cast("Store", _OpenStore()))
    reports = Reports(perform, lambda _: begun.release())

    async def report_twice(name: str) -> None:
        await reports.submit(milestone(name))
        await reports.submit(milestone(f"{name} again"))

    async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as tasks:
        for number in range(BATCHES_AT_ONCE):
            tasks.create_task(report_twice(str(number)))
            await begun.acquire()
        reports.free.set()
