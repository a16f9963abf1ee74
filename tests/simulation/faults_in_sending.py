"""What can be wrong about an attempt: its request, its result, and the time of the next one."""

import json
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from cuepost.domain.attempt import Outcome, outcome_of
from cuepost.domain.delivery import DeliveryStatus
from cuepost.domain.endpoint import StoredSecret
from cuepost.domain.instants import instant_of, to_millis
from cuepost.domain.retry_schedule import RetrySchedule
from cuepost.domain.signing import Signer, SigningSecret
from cuepost.engine import attempt_pipeline
from cuepost.engine.attempt_pipeline import AttemptPipeline, Crash, PreparedTarget
from cuepost.engine.lane_board import Capacity, LaneBoard
from cuepost.engine.outcome_recorder import OutcomeRecorder
from cuepost.ports.dispatch import Assignment, NextStep, Result
from cuepost.ports.store import StoreUnavailable
from cuepost.ports.system import Clock
from tests.simulation.deliberate_faults import Patch, breaks


def changed(patch: Patch, change: Callable[[Assignment], Assignment]) -> None:
    """Something else is sent than what was assigned."""
    sign = AttemptPipeline._sign

    def altered(self: AttemptPipeline, assignment: Assignment) -> Any:
        return replace(sign(self, change(assignment)), assignment=assignment)

    patch.setattr(AttemptPipeline, "_sign", altered)


@breaks("I2")
def marked_delivered_before_anybody_answered(patch: Patch) -> None:
    concluded = AttemptPipeline._concluded

    def hasty(self: AttemptPipeline, signed: Any, exchange: Any) -> Result | Crash:
        made = concluded(self, signed, exchange)
        assert isinstance(made, Result)
        attempt = replace(made.attempt, outcome=Outcome.DELIVERED)
        return replace(made, attempt=attempt, next_step=NextStep(DeliveryStatus.DELIVERED))

    patch.setattr(AttemptPipeline, "_concluded", hasty)


@breaks("I2")
def redirects_taken_for_success(patch: Patch) -> None:
    def generous(status: int | None) -> Outcome:
        found = outcome_of(status)
        return Outcome.DELIVERED if found is Outcome.REDIRECT else found

    patch.setattr(attempt_pipeline, "outcome_of", generous)


@breaks("I2")
def every_attempt_with_the_timestamp_of_the_event(patch: Patch) -> None:
    signed = PreparedTarget.signed

    def stale(self: PreparedTarget, event_id: UUID, timestamp: int, body: bytes) -> Any:
        return signed(self, event_id, to_millis(instant_of(event_id)) // 1000, body)

    patch.setattr(PreparedTarget, "signed", stale)


@breaks("I1", seed=22)
def outcomes_lost_when_the_store_fails(patch: Patch) -> None:
    async def careless(self: OutcomeRecorder) -> None:
        group = self._results[: self.at_once]
        with suppress(StoreUnavailable):
            await self._write(group)
            self.written([each.result for each in group])
        del self._results[: len(group)]
        self.written([])

    patch.setattr(OutcomeRecorder, "_flush", careless)


@breaks("I3")
def body_rewritten_at_the_second_attempt(patch: Patch) -> None:
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


@breaks("I6", seed=5)
def signed_with_an_expired_secret(patch: Patch) -> None:
    patch.setattr(StoredSecret, "is_live", lambda self, now: True)


@breaks("I6")
def one_signature_during_the_overlap(patch: Patch) -> None:
    def first_alone(assignment: Assignment) -> Assignment:
        target = assignment.target
        return replace(assignment, target=replace(target, secrets=target.secrets[:1]))

    changed(patch, first_alone)


@breaks("I7", seed=2)
def one_too_many_at_an_endpoint(patch: Patch) -> None:
    begin = LaneBoard.__init__

    def generous(self: LaneBoard, capacity: Capacity, clock: Clock) -> None:
        begin(self, replace(capacity, per_endpoint=capacity.per_endpoint + 1), clock)

    patch.setattr(LaneBoard, "__init__", generous)


@breaks("I9")
def a_secret_in_the_log(patch: Patch) -> None:
    begin = Signer.__init__

    def talkative(self: Signer, secret: SigningSecret) -> None:
        logging.getLogger("cuepost.engine").debug("signing with %s", secret.key)
        begin(self, secret)

    patch.setattr(Signer, "__init__", talkative)


@breaks("I6")
def targets_prepared_once_for_each_endpoint(patch: Patch) -> None:
    """Whatever becomes of the endpoint's secrets."""
    prepare = AttemptPipeline._prepare
    kept: dict[tuple[int, UUID], PreparedTarget] = {}

    def forgetful(self: AttemptPipeline, webhook_id: UUID, url: str, *sealed: bytes) -> Any:
        key = (id(self), webhook_id)
        kept[key] = kept.get(key) or prepare(self, webhook_id, url, *sealed)
        return kept[key]

    patch.setattr(AttemptPipeline, "_prepare", forgetful)
