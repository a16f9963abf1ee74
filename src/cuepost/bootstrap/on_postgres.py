"""What only a service on PostgreSQL needs, so that an embedded store does not load it."""

import asyncio
from collections.abc import Collection
from uuid import UUID

from cuepost.adapters.storage.postgres import PostgresStore
from cuepost.adapters.storage.postgres_wakeup import PostgresWakeup
from cuepost.bootstrap.container import Container
from cuepost.engine.shared_dispatcher import SharedDispatcher
from cuepost.ports.dispatch import Lane


class SharedHandover:
    """Hands over to the dispatcher of this process, and by NOTIFY to those of others."""

    def __init__(self, dispatcher: SharedDispatcher, wakeup: PostgresWakeup) -> None:
        self._dispatcher = dispatcher
        self._wakeup = wakeup
        self.reserve = dispatcher.reserve
        self.take = dispatcher.take
        self.give_back = dispatcher.give_back
        self.hand_over = wakeup.hand_over

    def reaches(self, worker: UUID) -> bool:
        return worker != self._dispatcher.lease.worker and self._wakeup.reaches(worker)

    def work_for(self, endpoints: Collection[Lane]) -> None:
        self._dispatcher.work_for(endpoints)
        self._wakeup.work_for(endpoints)


def announce(container: Container, group: asyncio.TaskGroup) -> "asyncio.Task[None]":
    """For a process that only accepts requests: notify the workers of new work."""
    store, wakeup = _connected(container)
    store.handover = wakeup
    return group.create_task(wakeup.run(None))


def listen(
    container: Container, dispatcher: SharedDispatcher, group: asyncio.TaskGroup
) -> "asyncio.Task[None]":
    """For a process that sends: notify other workers, and listen to notifications."""
    store, wakeup = _connected(container)
    store.handover = SharedHandover(dispatcher, wakeup)
    dispatcher.lanes.announce = wakeup.work_for
    return group.create_task(wakeup.run(dispatcher))


def _connected(container: Container) -> tuple[PostgresStore, PostgresWakeup]:
    assert isinstance(container.store, PostgresStore)
    return container.store, PostgresWakeup(container.store.direct_url, container.system.clock)
