"""Faults that somebody could make, put into the production code: the checker has to notice each.

A fault changes what one small part does, in the way in which that part could be wrong.
"""

import json
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

import pytest
import sqlalchemy as sa

from cuepost.adapters.storage import tables
from cuepost.adapters.storage.outbox import Outbox
from cuepost.adapters.storage.records import claim_statements, claims, delivery_pages, retention
from cuepost.adapters.storage.records.claims import Claims
from cuepost.adapters.storage.records.deliveries import DeliveryRecords
from cuepost.adapters.storage.records.endpoints import EndpointRecords
from cuepost.adapters.storage.records.outcomes import OutcomeRecords
from cuepost.adapters.storage.records.queue import QueueRecords
from cuepost.application import milestone_book
from cuepost.application.perform import Action, Perform
from cuepost.domain.attempt import Outcome, outcome_of
from cuepost.domain.delivery import CancelReason, DeliveryStatus
from cuepost.domain.endpoint import StoredSecret
from cuepost.domain.fanout import deliveries_of
from cuepost.domain.ids import instant_of, lowest_at
from cuepost.domain.retry_schedule import RetrySchedule
from cuepost.domain.signing import SigningSecret
from cuepost.engine import attempt_pipeline
from cuepost.engine.attempt_pipeline import AttemptPipeline
from cuepost.engine.lane_board import LaneBoard
from cuepost.engine.outcome_recorder import OutcomeRecorder
from cuepost.ports.dispatch import Assignment, Claim, Claimed, Result, Target, Verdict
from cuepost.ports.store import StoreUnavailable, Transaction

T = TypeVar("T")
Patch = pytest.MonkeyPatch


@dataclass(frozen=True, slots=True)
class Fault:
    """`breaks` are the promises one of which is seen broken."""

    put_in: Callable[[Patch], None]
    breaks: frozenset[str]

    @property
    def name(self) -> str:
        return self.put_in.__name__


FAULTS: list[Fault] = []


def breaks(*promises: str) -> Callable[[Callable[[Patch], None]], Callable[[Patch], None]]:
    def note(put_in: Callable[[Patch], None]) -> Callable[[Patch], None]:
        FAULTS.append(Fault(put_in, frozenset(promises)))
        return put_in

    return note


async def nothing(*_: object) -> None: ...


def changed(patch: Patch, change: Callable[[Assignment], Assignment]) -> None:
    """Something else is sent than what was assigned."""
    run = AttemptPipeline.run

    async def altered(self: AttemptPipeline, assignment: Assignment) -> Result:
        return replace(await run(self, change(assignment)), assignment=assignment)

    patch.setattr(AttemptPipeline, "run", altered)


@breaks("I2")
def marked_delivered_before_anybody_answered(patch: Patch) -> None:
    run = AttemptPipeline.run

    async def hasty(self: AttemptPipeline, assignment: Assignment) -> Result:
        made = await run(self, assignment)
        attempt = replace(made.attempt, outcome=Outcome.DELIVERED)
        return replace(made, attempt=attempt, verdict=Verdict(DeliveryStatus.DELIVERED))

    patch.setattr(AttemptPipeline, "run", hasty)


@breaks("I2")
def redirects_taken_for_success(patch: Patch) -> None:
    def generous(status: int | None) -> Outcome:
        found = outcome_of(status)
        return Outcome.DELIVERED if found is Outcome.REDIRECT else found

    patch.setattr(attempt_pipeline, "outcome_of", generous)


@breaks("I2")
def every_attempt_with_the_timestamp_of_the_event(patch: Patch) -> None:
    signed = AttemptPipeline._signed

    def stale(self: AttemptPipeline, assignment: Assignment, live: Any, at: datetime) -> Any:
        return signed(self, assignment, live, instant_of(assignment.event_id))

    patch.setattr(AttemptPipeline, "_signed", stale)


@breaks("I1")
def outcomes_lost_when_the_store_fails(patch: Patch) -> None:
    async def careless(self: OutcomeRecorder) -> None:
        group = self._results[: self._group]
        with suppress(StoreUnavailable):
            await self._write(group)
            self.written([result for _, result in group])
        self._forget(len(group))

    patch.setattr(OutcomeRecorder, "_flush", careless)


@breaks("I1", "I4")
def lease_not_checked_when_recording(patch: Patch) -> None:
    async def all_of_them(_: object, worker: UUID, results: Sequence[Result]) -> dict[UUID, None]:
        return {each.assignment.delivery_id: None for each in results}

    patch.setattr(OutcomeRecords, "_still_held", all_of_them)


@breaks("I1")
def the_dead_never_missed(patch: Patch) -> None:
    async def blind(_: object, now: datetime) -> int:
        return 0

    patch.setattr(QueueRecords, "dismiss_dead", blind)


@breaks("I1")
def acknowledged_before_the_commit(patch: Patch) -> None:
    change = Perform._change

    async def hasty(self: Perform, action: Action[T]) -> T:
        answers: list[T] = []

        async def acting(transaction: Transaction) -> T:
            answers.append(await action(transaction))
            return answers[-1]

        try:
            return await change(self, acting)
        except StoreUnavailable:
            if not answers:
                raise
            return answers[-1]

    patch.setattr(Perform, "_change", hasty)


@breaks("I1")
def one_endpoint_forgotten(patch: Patch) -> None:
    def few(*arguments: Any) -> Any:
        return deliveries_of(*arguments)[:1]

    patch.setattr(milestone_book, "deliveries_of", few)


@breaks("I1")
def retention_takes_what_is_live(patch: Patch) -> None:
    def old(account: Any, instant: datetime) -> sa.Select[Any]:
        rows = tables.deliveries
        return sa.select(rows.c.id).where(
            rows.c.account_id == account, rows.c.id < lowest_at(instant)
        )

    patch.setattr(retention, "_ended", old)


@breaks("I3")
def body_written_anew_at_the_second_attempt(patch: Patch) -> None:
    def rewritten(assignment: Assignment) -> Assignment:
        if assignment.number == 1:
            return assignment
        return replace(assignment, body=json.dumps(json.loads(assignment.body)).encode())

    changed(patch, rewritten)


@breaks("I3")
def another_id_at_the_second_attempt(patch: Patch) -> None:
    def renamed(assignment: Assignment) -> Assignment:
        if assignment.number == 1:
            return assignment
        return replace(assignment, event_id=UUID(int=assignment.event_id.int + 1))

    changed(patch, renamed)


@breaks("I3")
def sent_before_the_commit(patch: Patch) -> None:
    assign = Outbox.assign

    def hasty(self: Outbox, targets: dict[UUID, Target]) -> None:
        assign(self, targets)
        self.committed()
        self._assignments, self._reserved = {}, []

    patch.setattr(Outbox, "assign", hasty)


@breaks("I4")
def retried_a_little_early(patch: Patch) -> None:
    following = RetrySchedule.next_attempt_at

    def early(self: RetrySchedule, made: int, ended_at: datetime, jitter: float) -> datetime | None:
        return following(self, made, ended_at, -jitter)

    patch.setattr(RetrySchedule, "next_attempt_at", early)


@breaks("I4")
def a_fourth_attempt(patch: Patch) -> None:
    following = RetrySchedule.next_attempt_at

    def patient(self: RetrySchedule, made: int, ended_at: datetime, jitter: float) -> Any:
        return following(self, made - (made == self.attempts), ended_at, jitter)

    patch.setattr(RetrySchedule, "next_attempt_at", patient)


@breaks("I4")
def claimed_again_while_in_flight(patch: Patch) -> None:
    async def whatever_is_due(
        self: Claims, held: Sequence[UUID], wanted: Claim, now: datetime
    ) -> list[Any]:
        queue = tables.queue
        rows = await self._session.all(
            sa.select(*claim_statements.DUE)
            .where(queue.c.webhook_id.in_(held), queue.c.due_at <= now)
            .limit(wanted.room)
        )
        return [claims._Due._make(row) for row in rows]

    patch.setattr(Claims, "_due", whatever_is_due)


@breaks("I5")
def sent_after_the_endpoint_was_disabled(patch: Patch) -> None:
    patch.setattr(DeliveryRecords, "stop_endpoint", nothing)


@breaks("I5")
def sent_after_the_endpoint_was_deleted(patch: Patch) -> None:
    patch.setattr(EndpointRecords, "delete", nothing)


@breaks("I5")
def sent_after_the_project_was_deleted(patch: Patch) -> None:
    not_heeded(patch, CancelReason.PROJECT_DELETED)


@breaks("I5")
def sent_after_access_had_ended(patch: Patch) -> None:
    not_heeded(patch, CancelReason.PROJECT_ACCESS_EXPIRED)


def not_heeded(patch: Patch, ignored: CancelReason) -> None:
    """Several parts see to it that nothing is sent; all of them fail."""
    stop_project, stopped, claim = DeliveryRecords.stop_project, claims._stopped, QueueRecords.claim

    async def stop(self: Any, account: UUID, project: UUID, why: Any, now: datetime) -> None:
        if why is not ignored:
            await stop_project(self, account, project, why, now)

    def looked_at(fact: Any, now: datetime) -> CancelReason | None:
        found = stopped(fact, now)
        return None if found is ignored else found

    patch.setattr(DeliveryRecords, "stop_project", stop)

    async def endless(self: QueueRecords, wanted: Claim, now: datetime) -> Claimed:
        found = await claim(self, wanted, now)
        free = [replace(each, access_until=None) for each in found.assignments]
        return replace(found, assignments=free)

    patch.setattr(claims, "_stopped", looked_at)
    patch.setattr(QueueRecords, "claim", endless)


@breaks("I6")
def signed_with_an_expired_secret(patch: Patch) -> None:
    patch.setattr(StoredSecret, "is_live", lambda self, now: True)


@breaks("I6")
def one_signature_during_the_overlap(patch: Patch) -> None:
    def first_alone(assignment: Assignment) -> Assignment:
        target = assignment.target
        return replace(assignment, target=replace(target, secrets=target.secrets[:1]))

    changed(patch, first_alone)


@breaks("I7")
def one_too_many_at_an_endpoint(patch: Patch) -> None:
    begin = LaneBoard.__init__

    def generous(self: LaneBoard, cap: int, most_per_lane: int) -> None:
        begin(self, cap + 1, most_per_lane)

    patch.setattr(LaneBoard, "__init__", generous)


@breaks("I7")
def two_workers_at_one_endpoint(patch: Patch) -> None:
    async def everything(_: object, worker: UUID, chosen: Sequence[UUID]) -> list[UUID]:
        return list(chosen)

    patch.setattr(Claims, "_hold", everything)


@breaks("I8")
def rows_of_other_accounts_are_shown(patch: Patch) -> None:
    patch.setattr(delivery_pages, "visible", lambda account_id: sa.select(tables.deliveries))


@breaks("I9")
def a_secret_in_the_log(patch: Patch) -> None:
    run = AttemptPipeline.run

    async def talkative(self: AttemptPipeline, assignment: Assignment) -> Result:
        for each in assignment.target.secrets:
            secret = SigningSecret(self.box.open(each.sealed, assignment.webhook_id.bytes))
            logging.getLogger("cuepost.engine").debug("signing with %s", secret.key)
        return await run(self, assignment)

    patch.setattr(AttemptPipeline, "run", talkative)
