"""The pipeline reports milestones; an accepted one is committed with all that follows."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from uuid import UUID

from cuepost.application.gathering import Gathering
from cuepost.application.milestone_book import Bookkeeper, Milestone
from cuepost.application.perform import Perform
from cuepost.domain.access import Caller, Scope
from cuepost.domain.artifact import faults_of
from cuepost.domain.errors import FieldError, Invalid
from cuepost.domain.event import SilenceReason
from cuepost.domain.project import ProjectStatus, Stage, stage_after
from cuepost.ports.records import ReportAnswer, ReportKey
from cuepost.ports.store import Contention, Manner, Transaction

# In one transaction; a request may have more.
MOST_AT_ONCE = 500
ACCOUNTS_AT_ONCE = 10
REMEMBERED_OWNERS = 20_000
# Desks at which milestones of any account are booked together. What is large has one of its own, so
# that a single milestone does not wait for hundreds.
SMALL, LARGE = UUID(int=1), UUID(int=2)
LARGE_FROM = 50

Owned = tuple[UUID, Milestone]
"""A milestone, and the account of its project."""


class ReportMilestones:
    def __init__(self, perform: Perform, bookkeeper: Bookkeeper) -> None:
        self._perform = perform
        self._bookkeeper = bookkeeper
        self._gathering = Gathering(self._report_some, MOST_AT_ONCE)
        self._owners: dict[UUID, UUID] = {}

    async def report(self, caller: Caller, milestones: Sequence[Milestone]) -> list[ReportAnswer]:
        """One answer each, in order; what concerns an account is kept as a whole or not at all."""
        caller.require(Scope.MILESTONES_REPORT)
        _require_consistent(milestones)
        owners = await self._owners_of({milestone.project_id for milestone in milestones})
        owned = [
            (owners[milestone.project_id], milestone)
            for milestone in milestones
            if milestone.project_id in owners
        ]
        answers = await self._answers_to(owned)
        return [
            answers[owners[milestone.project_id], milestone.report_id]
            if milestone.project_id in owners
            else _unknown(milestone)
            for milestone in milestones
        ]

    async def _answers_to(self, owned: Sequence[Owned]) -> dict[ReportKey, ReportAnswer]:
        """All together; where somebody else is at an account, that one waits by itself."""
        held_up = {account for account, _ in owned if self._gathering.is_busy_with(account)}
        together = [each for each in owned if each[0] not in held_up]
        alone = [each for each in owned if each[0] in held_up]
        answers: dict[ReportKey, ReportAnswer] = {}
        if together:
            desk = LARGE if len(together) >= LARGE_FROM else SMALL
            try:
                answers |= await self._gathering.do(desk, together)
            except Contention:
                alone = [*together, *alone]
        return answers | await self._answers_by_account(alone)

    async def _answers_by_account(self, owned: Sequence[Owned]) -> dict[ReportKey, ReportAnswer]:
        of_account: dict[UUID, list[Owned]] = defaultdict(list)
        for account_id, milestone in owned:
            of_account[account_id].append((account_id, milestone))
        answers: dict[ReportKey, ReportAnswer] = {}
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
    ) -> dict[ReportKey, ReportAnswer]:
        async def book(transaction: Transaction) -> dict[ReportKey, ReportAnswer]:
            return await self._book(transaction, batch)

        if desk in (SMALL, LARGE):
            return await self._perform.change_once(book, Manner.IMPATIENT)
        return await self._perform.change(book)

    async def _book(
        self, transaction: Transaction, batch: Sequence[Owned]
    ) -> dict[ReportKey, ReportAnswer]:
        # Projects first: whoever reports the same milestone waits here, and then finds the report.
        projects = await transaction.projects.lock(
            {(account_id, milestone.project_id) for account_id, milestone in batch}
        )
        answers = await transaction.reports.find(
            [(account_id, milestone.report_id) for account_id, milestone in batch]
        )
        book = await self._bookkeeper.open(transaction, projects)
        fresh: dict[ReportKey, ReportAnswer] = {}
        for account_id, milestone in batch:
            key = account_id, milestone.report_id
            if key not in answers:
                answer = answers[key] = book.enter(milestone)
                # A refused report leaves no trace, so that it may be repeated when its time comes.
                if answer.accepted:
                    fresh[key] = answer
        await book.write(transaction)
        await transaction.reports.add(fresh, book.now)
        return answers


def _unknown(milestone: Milestone) -> ReportAnswer:
    return ReportAnswer(milestone.report_id, False, None, False, SilenceReason.PROJECT_NOT_FOUND)


def _require_consistent(milestones: Sequence[Milestone]) -> None:
    errors = [
        FieldError(f"milestones[{place}].{error.field}", error.code, error.message)
        for place, milestone in enumerate(milestones)
        for error in _contradictions(milestone)
    ]
    if errors:
        raise Invalid(*errors)


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
