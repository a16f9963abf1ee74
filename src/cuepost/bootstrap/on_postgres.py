"""What only a service on PostgreSQL needs, so that an embedded store does not load it."""

import asyncio
from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID

from cuepost.adapters.storage.outbox import NoHandover
from cuepost.adapters.storage.postgres import PostgresStore
from cuepost.adapters.storage.postgres_wakeup import PostgresWakeup
from cuepost.bootstrap.container import Container
from cuepost.engine.shared_dispatcher import SharedDispatcher
from cuepost.ports.dispatch import Assignment, DeliveryKey, Lane


class SharedHandover:
    """Hands over to the dispatcher of this process, and by NOTIFY to those of others."""

    def __init__(self, dispatcher: SharedDispatcher, wakeup: PostgresWakeup) -> None:
        self._dispatcher = dispatcher
        self._wakeup = wakeup

    def reserve(self, endpoint: Lane) -> UUID | None:
        return self._dispatcher.reserve(endpoint)

    def take(self, worker: UUID, assignments: Sequence[Assignment], as_of: datetime) -> None:
        self._dispatcher.take(worker, assignments, as_of)

    def give_back(self, endpoints: Sequence[Lane]) -> None:
        self._dispatcher.give_back(endpoints)

    def reaches(self, worker: UUID) -> bool:
        return self._wakeup.is_connected and worker != self._dispatcher.lease.worker

    def hand_over(self, worker: UUID, keys: Sequence[DeliveryKey]) -> None:
        self._wakeup.hand_over(worker, keys)

    def work_for(self, endpoints: Collection[Lane]) -> None:
        self._dispatcher.work_for(endpoints)
        self._wakeup.announce(endpoints)


class AnnouncingHandover(NoHandover):
    """For a process that sends nothing itself: hands over to other processes by NOTIFY."""

    def __init__(self, wakeup: PostgresWakeup) -> None:
        self._wakeup = wakeup

    def reaches(self, worker: UUID) -> bool:
        return self._wakeup.is_connected

    def hand_over(self, worker: UUID, keys: Sequence[DeliveryKey]) -> None:
        self._wakeup.hand_over(worker, keys)

    def work_for(self, endpoints: Collection[Lane]) -> None:
        self._wakeup.announce(endpoints)


def announce(container: Container, group: asyncio.TaskGroup) -> "asyncio.Task[None]":
    """For a process that only accepts requests: notify the workers of new work."""
    store, wakeup = _connected(container)
    store.handover = AnnouncingHandover(wakeup)
    return group.create_task(wakeup.run(None))


def listen(
    container: Container, dispatcher: SharedDispatcher, group: asyncio.TaskGroup
) -> "asyncio.Task[None]":
    """For a process that sends: notify other workers, and listen to notifications."""
    store, wakeup = _connected(container)
    store.handover = SharedHandover(dispatcher, wakeup)
    dispatcher.lanes.announce = wakeup.announce
    return group.create_task(wakeup.run(dispatcher))


def _connected(container: Container) -> tuple[PostgresStore, PostgresWakeup]:
    assert isinstance(container.store, PostgresStore)
    return container.store, PostgresWakeup(container.store.direct_url, container.system.clock)
