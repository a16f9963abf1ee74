"""The pipeline reports milestones; an accepted one is committed with all that follows."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from cuepost.application.gathering import Gathering
from cuepost.application.milestone_book import Bookkeeper, Milestone
from cuepost.application.perform import Perform
from cuepost.application.report_digest import digest_of
from cuepost.domain.access import Caller, Scope
from cuepost.domain.artifact import faults_of
from cuepost.domain.errors import FieldError, Invalid
from cuepost.domain.event import SilenceReason
from cuepost.domain.project import Project, ProjectStatus, Stage, stage_after
from cuepost.ports.records import KeptReport, ReportAnswer, ReportKey
from cuepost.ports.store import Contention, Manner, Transaction

# In one transaction; a request may have more.
MOST_AT_ONCE = 500
ACCOUNTS_AT_ONCE = 10
# Desks at which milestones of any account are booked together. What is large has one of its own, so
# that a single milestone does not wait for hundreds.
SMALL, LARGE = UUID(int=1), UUID(int=2)
NOBODY = UUID(int=3)
LARGE_FROM = 50


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A milestone to be booked, and the digest of its content."""

    milestone: Milestone
    digest: bytes


Answers = dict[Entry, ReportAnswer]


class ReportMilestones:
    def __init__(self, perform: Perform, bookkeeper: Bookkeeper) -> None:
        self._perform = perform
        self._bookkeeper = bookkeeper
        self._gathering = Gathering(self._report_some, MOST_AT_ONCE)

    async def report(self, caller: Caller, milestones: Sequence[Milestone]) -> list[ReportAnswer]:
        """One answer each, in order; what concerns an account is kept as a whole or not at all."""
        caller.require(Scope.MILESTONES_REPORT)
        entries = [_entry(milestone) for milestone in milestones]
        answers = await self._answers_to([each for each in entries if isinstance(each, Entry)])
        return [answers[each] if isinstance(each, Entry) else each for each in entries]

    async def _answers_to(self, entries: Sequence[Entry]) -> Answers:
        """All together; where somebody else is at an account, that one waits by itself."""
        if not entries:
            return {}
        if not self._gathering.is_busy_beside(SMALL, LARGE):
            return await self._together(entries)
        owners = await self._owners_of(entries)
        together = [each for each in entries if not self._gathering.is_busy_with(owners[each])]
        apart = [each for each in entries if self._gathering.is_busy_with(owners[each])]
        answers = await self._together(together) if together else {}
        return answers | await self._by_account(apart, owners)

    async def _together(self, entries: Sequence[Entry]) -> Answers:
        desk = LARGE if len(entries) >= LARGE_FROM else SMALL
        try:
            return await self._gathering.do(desk, entries)
        except Contention:
            return await self._by_account(entries, await self._owners_of(entries))

    async def _by_account(self, entries: Sequence[Entry], owners: Mapping[Entry, UUID]) -> Answers:
        of_account: dict[UUID, list[Entry]] = defaultdict(list)
        for each in entries:
            of_account[owners[each]].append(each)
        answers: Answers = {}
        accounts = list(of_account.items())
        for first in range(0, len(accounts), ACCOUNTS_AT_ONCE):
            some = accounts[first : first + ACCOUNTS_AT_ONCE]
            found = await asyncio.gather(
                *(self._gathering.do(account_id, each) for account_id, each in some),
                return_exceptions=True,
            )
            for answered in found:
                if isinstance(answered, BaseException):
                    raise answered
                answers.update(answered)
        return answers

    async def _owners_of(self, entries: Sequence[Entry]) -> Mapping[Entry, UUID]:
        """The accounts of their projects; those without a project are nobody's."""
        project_ids = list({each.milestone.project_id for each in entries})
        found = await self._perform.glance(
            lambda transaction: transaction.projects.owners(project_ids)
        )
        return {each: found.get(each.milestone.project_id, NOBODY) for each in entries}

    async def _report_some(self, desk: UUID, batch: Sequence[Entry]) -> Answers:
        async def book(transaction: Transaction) -> Answers:
            return await self._book(transaction, batch)

        if desk in (SMALL, LARGE):
            return await self._perform.change_once(book, Manner.IMPATIENT)
        return await self._perform.change(book)

    async def _book(self, transaction: Transaction, batch: Sequence[Entry]) -> Answers:
        # Projects first: whoever reports the same milestone waits here, and then finds the report.
        named = {each.milestone.project_id for each in batch}
        projects = await transaction.projects.lock_any(named)
        keys = [_report_key(each.milestone, projects) for each in batch]
        known = await transaction.reports.find([key for key in keys if key[0] != NOBODY])
        book = await self._bookkeeper.open(transaction, projects)
        answers: Answers = {}
        said: dict[tuple[ReportKey, bytes], ReportAnswer] = {}
        fresh: dict[ReportKey, KeptReport] = {}
        for each, key in zip(batch, keys, strict=True):
            if (key, each.digest) in said:
                answers[each] = said[key, each.digest]
                continue
            if key in known:
                answer = _answer_again(known[key], each.milestone, each.digest)
            else:
                answer = book.enter(each.milestone)
                # A refused report leaves no trace: it may be repeated when its time comes.
                if answer.accepted:
                    known[key] = fresh[key] = KeptReport(answer, each.digest)
            answers[each] = said[key, each.digest] = answer
        await book.write(transaction)
        await transaction.reports.add(fresh, book.now)
        return answers


def _report_key(milestone: Milestone, projects: Mapping[UUID, Project]) -> ReportKey:
    project = projects.get(milestone.project_id)
    return NOBODY if project is None else project.account_id, milestone.report_id


def _entry(milestone: Milestone) -> Entry | ReportAnswer:
    """What to book, or why there is nothing to book."""
    errors = _contradictions(milestone)
    if errors:
        return _refused(milestone, SilenceReason.INVALID, *errors)
    return Entry(milestone, digest_of(milestone))


def _answer_again(kept: KeptReport, milestone: Milestone, digest: bytes) -> ReportAnswer:
    if kept.digest is None or kept.digest == digest:
        return kept.answer
    return _refused(milestone, SilenceReason.REPORT_ID_REUSED)


def _refused(milestone: Milestone, reason: SilenceReason, *errors: FieldError) -> ReportAnswer:
    return ReportAnswer(milestone.report_id, False, None, False, reason, errors)


def _contradictions(milestone: Milestone) -> list[FieldError]:
    errors: list[FieldError] = []
    try:
        stage_after(Stage.PROCESSING, milestone.status, milestone.stage)
    except Invalid as invalid:
        errors += invalid.errors
    if milestone.error is not None and milestone.status is not ProjectStatus.FAILED:
        errors.append(
            FieldError("error", "error_not_expected", "Only a failed milestone has an error.")
        )
    if milestone.artifacts and milestone.status is not ProjectStatus.COMPLETED:
        errors.append(
            FieldError(
                "artifacts", "artifacts_not_expected", "Only a completed milestone has artifacts."
            )
        )
    errors += [
        FieldError(f"artifacts[{place}].{fault.field}", fault.code, fault.message)
        for place, artifact in enumerate(milestone.artifacts or ())
        for fault in faults_of(artifact.name, artifact.key)
    ]
    return errors
