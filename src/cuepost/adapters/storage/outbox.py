"""What a transaction has for the engine, told only once it is committed."""

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from cuepost.domain.delivery import Delivery
from cuepost.ports.dispatch import Assignment, Handover, Target
from cuepost.ports.store import Manner


@dataclass(slots=True)
class Outbox:
    handover: Handover
    bodies: dict[UUID, bytes] = field(default_factory=dict)
    _reserved: list[tuple[UUID, Delivery]] = field(default_factory=list)
    _assignments: dict[UUID, list[Assignment]] = field(default_factory=dict)
    _waiting: set[UUID] = field(default_factory=set)
    _is_over: bool = False

    def lease(self, delivery: Delivery) -> UUID | None:
        """The worker that sends it at once; None when it has to wait in the queue."""
        lease = self.handover.reserve(delivery.webhook_id) if self._knows(delivery) else None
        if lease is None:
            self._waiting.add(delivery.webhook_id)
        else:
            self._reserved.append((lease, delivery))
        return lease

    @property
    def reserved(self) -> list[Delivery]:
        return [delivery for _, delivery in self._reserved]

    def wait(self, webhook_id: UUID) -> None:
        self._waiting.add(webhook_id)

    @property
    def _as_of(self) -> datetime:
        return self._reserved[0][1].created_at

    def assign(self, targets: dict[UUID, Target]) -> None:
        """A worker may have got another name between two reservations, hence by worker."""
        self._assignments = {}
        for worker, each in self._reserved:
            assignment = Assignment(
                account_id=each.account_id,
                delivery_id=each.id,
                webhook_id=each.webhook_id,
                event_id=each.event_id,
                trigger=each.trigger,
                budget=each.budget,
                number=1,
                attempt_count=each.attempt_count,
                body=self.bodies[each.event_id],
                target=targets[each.webhook_id],
            )
            self._assignments.setdefault(worker, []).append(assignment)

    def committed(self) -> None:
        """Once, however often it is called; what happens to the caller then changes nothing."""
        if self._is_over:
            return
        self._is_over = True
        for worker, assignments in self._assignments.items():
            self.handover.take(worker, assignments, self._as_of)
        if self._waiting:
            self.handover.work_for(self._waiting)

    def rolled_back(self) -> None:
        if self._reserved and not self._is_over:
            self.handover.give_back([delivery.webhook_id for _, delivery in self._reserved])

    def _knows(self, delivery: Delivery) -> bool:
        return delivery.event_id in self.bodies


@asynccontextmanager
async def sending(handover: Handover, manner: Manner) -> AsyncIterator[Outbox]:
    """Around a whole transaction: what is in the outbox goes when it has committed."""
    outbox = Outbox(handover)
    if manner.has_to_last:
        handover.make_way()
    try:
        yield outbox
    except BaseException:
        outbox.rolled_back()
        raise
    else:
        outbox.committed()
    finally:
        if manner.has_to_last:
            handover.passed()


class NoHandover:
    """Of a process that sends nothing itself."""

    def reserve(self, webhook_id: UUID) -> UUID | None:
        return None

    def take(self, worker: UUID, assignments: Sequence[Assignment], as_of: datetime) -> None:
        raise AssertionError("nothing was reserved")

    def give_back(self, webhook_ids: Sequence[UUID]) -> None:
        raise AssertionError("nothing was reserved")

    def work_for(self, webhook_ids: Collection[UUID]) -> None:
        """The workers find it by themselves."""

    def make_way(self) -> None:
        """There is nothing else to do here."""

    passed = make_way

    def is_expecting(self) -> bool:
        return False
