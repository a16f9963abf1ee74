"""Milestone reports of the pipeline; an accepted one is committed with its event and deliveries.

Milestones that arrive while others are being written are written together, in one transaction. So
the cost of each falls as the load rises, and no milestone waits for a batch to fill.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from uuid import UUID

from cuepost.application.milestone_batch import (
    Milestone,
    MilestoneBatch,
    MilestoneBatches,
    contradictions_of,
    digest_of,
)
from cuepost.application.perform import Perform
from cuepost.domain.access import Caller, Scope
from cuepost.domain.errors import FieldError
from cuepost.domain.event import SilenceReason
from cuepost.ports.records import ReportAnswer, ReportKey, StoredReport
from cuepost.ports.saving import may_have_saved
from cuepost.ports.store import Priority, StoreUnavailable, Transaction
from cuepost.tuning import MILESTONES_AT_ONCE, MILESTONES_WHILE_FREE

# Stands for the account of a project that does not exist.
NO_ACCOUNT = UUID(int=3)
# On PostgreSQL two batches run concurrently, so that a large one does not delay a small one.
BATCHES_AT_ONCE = 2
PROJECTS_AT_ONCE = 10


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A milestone to be written, and the digest of its content."""

    milestone: Milestone
    digest: bytes


Answers = dict[Entry, ReportAnswer]


@dataclass(slots=True, eq=False)
class _Waiting:
    """Entries that are written together; more are accepted until that begins."""

    entries: list[Entry] = field(default_factory=list)
    is_open: bool = True
    skip_locked: bool = True
    # One for each caller, so that one can be cancelled without the others.
    answers: list[asyncio.Future[Answers]] = field(default_factory=list)

    def take_out(self, entries: Sequence[Entry]) -> bool:
        """Remove the entries of a cancelled caller; return False if they are being written."""
        if self.is_open:
            leaving = set(entries)
            self.entries = [each for each in self.entries if each not in leaving]
        return self.is_open


class ReportMilestones:
    def __init__(self, perform: Perform, milestone_batches: MilestoneBatches) -> None:
        self._perform = perform
        self._milestone_batches = milestone_batches
        self._waiting: deque[_Waiting] = deque()
        self._newest = _Waiting(is_open=False)
        self._writers: set[asyncio.Future[None]] = set()
        self._turns_apart = asyncio.Semaphore(PROJECTS_AT_ONCE)

    async def report(self, caller: Caller, milestones: Sequence[Milestone]) -> list[ReportAnswer]:
        """Return one answer for each milestone, in order."""
        caller.require(Scope.MILESTONES_REPORT)
        entries = [
            _refused(each, SilenceReason.INVALID, *errors)
            if (errors := contradictions_of(each))
            else Entry(each, digest_of(each))
            for each in milestones
        ]
        valid = [each for each in entries if isinstance(each, Entry)]
        answers = await self._submit(valid) if valid else {}
        return [answers[each] if isinstance(each, Entry) else each for each in entries]

    async def _submit(self, entries: Sequence[Entry]) -> Answers:
        """Returns the answers to these entries, and perhaps others."""
        newest, writing = self._newest, sum(not each.done() for each in self._writers)
        # While another batch can be written at the same time, a large one takes no others along.
        room = MILESTONES_AT_ONCE if writing >= BATCHES_AT_ONCE else MILESTONES_WHILE_FREE
        if not newest.is_open or len(newest.entries) + len(entries) > room:
            newest = self._newest = self._begin_waiting()
        newest.entries += entries
        answered: asyncio.Future[Answers] = asyncio.get_running_loop().create_future()
        newest.answers.append(answered)
        try:
            answers = await answered
        except asyncio.CancelledError:
            if not newest.take_out(entries):
                may_have_saved()
            raise
        except StoreUnavailable:
            raise
        except Exception:  # noqa: BLE001  # the cause may be another request in the batch
            return await self._write_apart(entries)
        locked = [each for each in entries if each not in answers]
        return answers | await self._write_apart(locked) if locked else answers

    def _begin_waiting(self) -> _Waiting:
        waiting = _Waiting()
        self._waiting.append(waiting)
        # A writer is done in the step in which it finds nothing waiting, so a running one
        # will see this batch. Callbacks of tasks come a step later, and would be too late.
        self._writers = {each for each in self._writers if not each.done()}
        if len(self._writers) < BATCHES_AT_ONCE:
            writer = asyncio.ensure_future(self._write_waiting())  # noqa: TID251  # it ends soon
            self._writers.add(writer)
        return waiting

    async def _write_waiting(self) -> None:
        while self._waiting:
            waiting = self._waiting.popleft()
            answers: Answers = {}
            try:
                # There are none if their callers were cancelled.
                if waiting.entries:
                    write = partial(self._write, waiting)
                    answers = await self._perform.store.write(write, Priority.INGEST)
            except Exception as error:  # noqa: BLE001  # passed to the callers
                for answer in waiting.answers:
                    if not answer.done():
                        answer.set_exception(error)
            else:
                for answer in waiting.answers:
                    if not answer.done():
                        answer.set_result(answers)
            finally:
                # It is not waiting any more, so a later caller must not join it.
                waiting.is_open = False

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

    async def _write_one_project(self, entries: list[Entry]) -> Answers:
        async with self._turns_apart:
            alone = _Waiting(entries, skip_locked=False)
            return await self._perform.change(partial(self._write, alone))

    async def _write(self, waiting: _Waiting, transaction: Transaction) -> Answers:
        """With `skip_locked` there is no answer for projects that other transactions have locked,
        nor for those of accounts that are moving; these are written separately.

        Projects are locked first, so that a concurrent report of the same milestone waits for the
        lock and then finds the stored report.
        """
        waiting.is_open = False
        entries, skip_locked = waiting.entries, waiting.skip_locked
        named = {each.milestone.project_id for each in entries}
        projects = await transaction.projects.lock_any(named, skip_locked=skip_locked)
        missing = named - projects.keys()
        # A project that exists and was skipped is locked.
        locked = await transaction.projects.owners(list(missing)) if missing else {}
        owners = {project.id: project.account_id for project in projects.values()}
        keyed: dict[Entry, ReportKey] = {
            each: (owners.get(each.milestone.project_id, NO_ACCOUNT), each.milestone.report_id)
            for each in entries
            if each.milestone.project_id not in locked
        }
        known = await transaction.reports.find([k for k in keyed.values() if k[0] != NO_ACCOUNT])
        batch = await self._milestone_batches.open(transaction, projects)
        if skip_locked and batch.not_live:
            keyed = {each: key for each, key in keyed.items() if key[0] not in batch.moving}
        answers, new = _decided(keyed, known, batch)
        await batch.write(transaction)
        await transaction.reports.add(new, batch.now)
        return answers


def _decided(
    keyed: Mapping[Entry, ReportKey], known: dict[ReportKey, StoredReport], batch: MilestoneBatch
) -> tuple[Answers, dict[ReportKey, StoredReport]]:
    """The answer to each entry, and the reports to store; `known` gets these as well."""
    answers: Answers = {}
    answered: dict[tuple[ReportKey, bytes], ReportAnswer] = {}
    new: dict[ReportKey, StoredReport] = {}
    for each, key in keyed.items():
        answer = answered.get((key, each.digest))
        if answer is None and key in known:
            answer = _answer_again(known[key], each.milestone, each.digest)
        elif answer is None:
            answer = batch.add(each.milestone)
            # A refused report is not stored, so that it can be repeated later.
            if answer.accepted:
                known[key] = new[key] = StoredReport(answer, each.digest)
        answers[each] = answered[key, each.digest] = answer
    return answers, new


def _answer_again(kept: StoredReport, milestone: Milestone, digest: bytes) -> ReportAnswer:
    if kept.digest is None or kept.digest == digest:
        return kept.answer
    return _refused(milestone, SilenceReason.REPORT_ID_REUSED)


def _refused(milestone: Milestone, reason: SilenceReason, *errors: FieldError) -> ReportAnswer:
    return ReportAnswer(milestone.report_id, False, None, False, reason, errors)
