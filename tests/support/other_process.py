"""A process that only takes requests and actions over what it books, as in production."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from cuepost.adapters.storage.outbox import NoHandover
from cuepost.ports.dispatch import DeliveryKey, Lane


@dataclass
class OtherProcess(NoHandover):
    """`says` passes its word on to a worker, or loses it."""

    says: Callable[[UUID, Sequence[DeliveryKey]], None]
    handed_over: list[DeliveryKey] = field(default_factory=list)
    waiting: set[Lane] = field(default_factory=set)

    def reaches(self, worker: UUID) -> bool:
        return True

    def hand_over(self, worker: UUID, keys: Sequence[DeliveryKey]) -> None:
        self.handed_over += keys
        self.says(worker, keys)

    def work_for(self, lanes: Collection[Lane]) -> None:
        self.waiting |= set(lanes)
