"""What a transaction has for the dispatcher, passed on after the commit."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from cuepost.domain.delivery import Delivery
from cuepost.ports.dispatch import Assignment, DeliveryKey, Handover, Lane, Target


class Reserved(NamedTuple):
    """A delivery that a worker of this process sends as soon as it is committed."""

    worker: UUID
    delivery: Delivery
    account: int
    lane: Lane


@dataclass(slots=True)
class Outbox:
    handover: Handover
    bodies: dict[UUID, bytes] = field(default_factory=dict)
    reserved: list[Reserved] = field(default_factory=list)
    _assignments: dict[UUID, list[Assignment]] = field(default_factory=dict)
    _handed_over: dict[UUID, list[DeliveryKey]] = field(default_factory=dict)
    _waiting: set[Lane] = field(default_factory=set)
    _is_over: bool = False

    def lease(
        self, delivery: Delivery, account: int, lane: Lane, holder: UUID | None
    ) -> UUID | None:
        """The worker that sends it at once; None if it has to wait in the queue.

        `holder` is the worker that accepts new deliveries of this lane.
        """
        if delivery.event_id in self.bodies:
            worker = self.handover.reserve(lane)
            if worker is not None:
                self.reserved.append(Reserved(worker, delivery, account, lane))
                return worker
            if holder is not None and self.handover.reaches(holder):
                self._handed_over.setdefault(holder, []).append((account, delivery.id))
                return holder
        self._waiting.add(lane)
        return None

    def wait(self, lane: Lane) -> None:
        self._waiting.add(lane)

    def assign(self, targets: dict[Lane, Target]) -> None:
        """Grouped by worker, because a worker's id may change between two reservations."""
        self._assignments = {}
        for worker, each, account, lane in self.reserved:
            # Keyword arguments would take five times as long, and this runs for every delivery.
            assignment = Assignment(
                account,
                each.id,
                lane,
                each.event_id,
                each.event_type,
                each.project_id,
                each.trigger,
                each.budget,
                1,
                each.attempt_count,
                self.bodies[each.event_id],
                targets[lane],
            )
            self._assignments.setdefault(worker, []).append(assignment)

    def committed(self) -> None:
        """Passes everything on; further calls, and a later `rolled_back`, have no effect."""
        if self._is_over:
            return
        self._is_over = True
        for worker, assignments in self._assignments.items():
            self.handover.take(worker, assignments, self.reserved[0].delivery.created_at)
        for worker, keys in self._handed_over.items():
            self.handover.hand_over(worker, keys)
        if self._waiting:
            self.handover.work_for(self._waiting)

    def rolled_back(self) -> None:
        if self.reserved and not self._is_over:
            self.handover.give_back([each.lane for each in self.reserved])
        self._is_over = True


class NoHandover:
    """The handover of a process without a dispatcher."""

    def reserve(self, lane: Lane) -> UUID | None:
        return None

    def take(self, worker: UUID, assignments: Sequence[Assignment], as_of: datetime) -> None:
        raise AssertionError("nothing was reserved")

    def give_back(self, lanes: Sequence[Lane]) -> None:
        raise AssertionError("nothing was reserved")

    def reaches(self, worker: UUID) -> bool:
        return False

    def hand_over(self, worker: UUID, keys: Sequence[DeliveryKey]) -> None:
        raise AssertionError("no worker was reached")

    def work_for(self, lanes: Collection[Lane]) -> None:
        """Workers find the deliveries when they poll."""
