"""Milestones that arrive while others are being written are written together, in one transaction.

So the cost of each falls as the load rises, and no milestone waits for a batch to fill.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID

from cuepost.application.milestone_batch import Milestone
from cuepost.application.perform import Perform
from cuepost.ports.records import ReportAnswer
from cuepost.ports.saving import may_have_saved
from cuepost.ports.store import Priority, StoreUnavailable, Transaction
from cuepost.tuning import MILESTONES_AT_ONCE, MILESTONES_WHILE_FREE

# On PostgreSQL two batches run concurrently, so that a large one does not delay a small one.
BATCHES_AT_ONCE = 2
PROJECTS_AT_ONCE = 10


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A milestone to be written, and the digest of its content."""

    milestone: Milestone
    digest: bytes


Answers = dict[Entry, ReportAnswer]


class WriteBatch(Protocol):
    def __call__(
        self, transaction: Transaction, entries: Sequence[Entry], *, skip_locked: bool
    ) -> Awaitable[Answers]: ...


@dataclass(slots=True, eq=False)
class _Batch:
    """Accepts further entries until it begins to be written."""

    entries: list[Entry] = field(default_factory=list)
    is_open: bool = True
    # One for each caller, so that one can be cancelled without the others.
    answers: list[asyncio.Future[Answers]] = field(default_factory=list)

    def take_out(self, entries: Sequence[Entry]) -> bool:
        """Remove the entries of a cancelled caller; return False if they are being written."""
        if self.is_open:
            leaving = set(entries)
            self.entries = [each for each in self.entries if each not in leaving]
        return self.is_open


class MilestoneBatcher:
    def __init__(self, perform: Perform, write_batch: WriteBatch) -> None:
        self._perform = perform
        self._write_batch = write_batch
        self._waiting: deque[_Batch] = deque()
        self._newest = _Batch(is_open=False)
        self._writers: set[asyncio.Future[None]] = set()
        self._turns_apart = asyncio.Semaphore(PROJECTS_AT_ONCE)

    async def submit(self, entries: Sequence[Entry]) -> Answers:
        """Returns the answers to these entries, and perhaps others."""
        batch, writing = self._newest, sum(not each.done() for each in self._writers)
        # While another batch can be written at the same time, a large one takes no others along.
        room = MILESTONES_AT_ONCE if writing >= BATCHES_AT_ONCE else MILESTONES_WHILE_FREE
        if not batch.is_open or len(batch.entries) + len(entries) > room:
            batch = self._newest = self._open_batch()
        batch.entries += entries
        answered: asyncio.Future[Answers] = asyncio.get_running_loop().create_future()
        batch.answers.append(answered)
        try:
            answers = await answered
        except asyncio.CancelledError:
            if not batch.take_out(entries):
                may_have_saved()
            raise
        except StoreUnavailable:
            raise
        except Exception:  # noqa: BLE001  # the cause may be another request in the batch
            return await self._write_apart(entries)
        locked = [each for each in entries if each not in answers]
        return answers | await self._write_apart(locked) if locked else answers

    def _open_batch(self) -> _Batch:
        batch = _Batch()
        self._waiting.append(batch)
        # A writer is done in the step in which it finds nothing waiting, so a running one
        # will see this batch. Callbacks of tasks come a step later, and would be too late.
        self._writers = {each for each in self._writers if not each.done()}
        if len(self._writers) < BATCHES_AT_ONCE:
            writer = asyncio.ensure_future(self._write_waiting())  # noqa: TID251  # it ends soon
            self._writers.add(writer)
        return batch

    async def _write_waiting(self) -> None:
        while self._waiting:
            batch = self._waiting.popleft()
            if batch.entries:
                await self._write(batch)
            else:
                # It is not waiting any more, so a later caller must not join it.
                batch.is_open = False

    async def _write(self, batch: _Batch) -> None:
        async def begin(transaction: Transaction) -> Answers:
            batch.is_open = False
            return await self._write_batch(transaction, batch.entries, skip_locked=True)

        try:
            answers = await self._perform.store.write(begin, Priority.INGEST)
        except Exception as error:  # noqa: BLE001  # passed to the callers
            batch.is_open = False
            for answer in batch.answers:
                if not answer.done():
                    answer.set_exception(error)
        else:
            for answer in batch.answers:
                if not answer.done():
                    answer.set_result(answers)

    async def _write_apart(self, entries: Sequence[Entry]) -> Answers:
        """Write each project separately, so that one that stays locked delays no other."""
        of_project: dict[UUID, list[Entry]] = defaultdict(list)
        for each in entries:
            of_project[each.milestone.project_id].append(each)
        written = await asyncio.gather(
            *(self._write_one_project(some) for some in of_project.values()), return_exceptions=True
        )
        answers: Answers = {}
        for some in written:
            if isinstance(some, BaseException):
                raise some
            answers |= some
        return answers

    async def _write_one_project(self, entries: Sequence[Entry]) -> Answers:
        async with self._turns_apart:
            return await self._perform.change(
                lambda transaction: self._write_batch(transaction, entries, skip_locked=False)
            )
