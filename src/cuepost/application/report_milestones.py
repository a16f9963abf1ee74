"""The pipeline reports milestones; an accepted one is committed with all that follows."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from uuid import UUID

from cuepost.application.gathering import Gathering
from cuepost.application.milestone_book import Bookkeeper, Milestone
from cuepost.application.perform import Perform
from cuepost.application.report_digest import digest_of
from cuepost.domain.access import Caller, Scope
from cuepost.domain.artifact import faults_of
from cuepost.domain.errors import FieldError, Invalid
from cuepost.domain.event import SilenceReason
from cuepost.domain.project import ProjectStatus, Stage, stage_after
from cuepost.ports.records import KeptReport, ReportAnswer, ReportKey
from cuepost.ports.store import Contention, Manner, Transaction

# In one transaction; a request may have more.
MOST_AT_ONCE = 500
ACCOUNTS_AT_ONCE = 10
REMEMBERED_OWNERS = 20_000
# Desks at which milestones of any account are booked together. What is large has one of its own, so
# that a single milestone does not wait for hundreds.
SMALL, LARGE = UUID(int=1), UUID(int=2)
LARGE_FROM = 50

Owned = tuple[UUID, Milestone, bytes]
"""The account of a project, its milestone, and the digest of that."""
ContentKey = tuple[UUID, str, bytes]
"""Account, report id and digest: the same report id may come with other content."""


class ReportMilestones:
    def __init__(self, perform: Perform, bookkeeper: Bookkeeper) -> None:
        self._perform = perform
        self._bookkeeper = bookkeeper
        self._gathering = Gathering(self._report_some, MOST_AT_ONCE)
        self._owners: dict[UUID, UUID] = {}

    async def report(self, caller: Caller, milestones: Sequence[Milestone]) -> list[ReportAnswer]:
        """One answer each, in order; what concerns an account is kept as a whole or not at all."""
        caller.require(Scope.MILESTONES_REPORT)
        owners = await self._owners_of({milestone.project_id for milestone in milestones})
        entries = [_entry(milestone, owners.get(milestone.project_id)) for milestone in milestones]
        answers = await self._answers_to([each for each in entries if isinstance(each, tuple)])
        return [answers[_key(each)] if isinstance(each, tuple) else each for each in entries]

    async def _answers_to(self, owned: Sequence[Owned]) -> dict[ContentKey, ReportAnswer]:
        """All together; where somebody else is at an account, that one waits by itself."""
        held_up = {account for account, _, _ in owned if self._gathering.is_busy_with(account)}
        together = [each for each in owned if each[0] not in held_up]
        alone = [each for each in owned if each[0] in held_up]
        answers: dict[ContentKey, ReportAnswer] = {}
        if together:
            desk = LARGE if len(together) >= LARGE_FROM else SMALL
            try:
                answers |= await self._gathering.do(desk, together)
            except Contention:
                alone = [*together, *alone]
        return answers | await self._answers_by_account(alone)

    async def _answers_by_account(self, owned: Sequence[Owned]) -> dict[ContentKey, ReportAnswer]:
        of_account: dict[UUID, list[Owned]] = defaultdict(list)
        for each in owned:
            of_account[each[0]].append(each)
        answers: dict[ContentKey, ReportAnswer] = {}
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

    async def _owners_of(self, project_ids: Set[UUID]) -> Mapping[UUID, UUID]:
        """Remembered, as a project never changes hands; one that is gone is noticed later on."""
        known = {each: self._owners[each] for each in project_ids if each in self._owners}
        unknown = [each for each in project_ids if each not in known]
        if not unknown:
            return known
        found = await self._perform.glance(lambda transaction: transaction.projects.owners(unknown))
        if len(self._owners) + len(found) > REMEMBERED_OWNERS:
            self._owners.clear()
        self._owners.update(found)
        return {**known, **found}

    async def _report_some(
        self, desk: UUID, batch: Sequence[Owned]
    ) -> dict[ContentKey, ReportAnswer]:
        async def book(transaction: Transaction) -> dict[ContentKey, ReportAnswer]:
            return await self._book(transaction, batch)

        if desk in (SMALL, LARGE):
            return await self._perform.change_once(book, Manner.IMPATIENT)
        return await self._perform.change(book)

    async def _book(
        self, transaction: Transaction, batch: Sequence[Owned]
    ) -> dict[ContentKey, ReportAnswer]:
        # Projects first: whoever reports the same milestone waits here, and then finds the report.
        projects = await transaction.projects.lock(
            {(account_id, milestone.project_id) for account_id, milestone, _ in batch}
        )
        known = await transaction.reports.find(
            [(account_id, milestone.report_id) for account_id, milestone, _ in batch]
        )
        book = await self._bookkeeper.open(transaction, projects)
        answers: dict[ContentKey, ReportAnswer] = {}
        fresh: dict[ReportKey, KeptReport] = {}
        for account_id, milestone, digest in batch:
            content = account_id, milestone.report_id, digest
            if content in answers:
                continue
            key = account_id, milestone.report_id
            if key in known:
                answers[content] = _answer_again(known[key], milestone, digest)
                continue
            answer = answers[content] = book.enter(milestone)
            # A refused report leaves no trace, so that it may be repeated when its time comes.
            if answer.accepted:
                known[key] = fresh[key] = KeptReport(answer, digest)
        await book.write(transaction)
        await transaction.reports.add(fresh, book.now)
        return answers


def _key(owned: Owned) -> ContentKey:
    account_id, milestone, digest = owned
    return account_id, milestone.report_id, digest


def _entry(milestone: Milestone, account_id: UUID | None) -> Owned | ReportAnswer:
    """What to book, or why there is nothing to book."""
    errors = _contradictions(milestone)
    if errors:
        return _refused(milestone, SilenceReason.INVALID, *errors)
    if account_id is None:
        return _refused(milestone, SilenceReason.PROJECT_NOT_FOUND)
    return account_id, milestone, digest_of(milestone)


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
