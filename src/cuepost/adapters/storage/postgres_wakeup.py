"""Wake-ups between processes on the same PostgreSQL: lanes that have work, and deliveries that are
leased to a worker of another process.

Wake-ups are sent outside of the transactions, because `NOTIFY` inside a transaction serialises all
commits of the database. They are batched for a moment. Losing one costs a poll interval of the
dispatcher, or the time until a heartbeat finds the lease.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Protocol
from uuid import UUID

from cuepost.adapters.quick_ids import id_from
from cuepost.adapters.storage.outbox import NoHandover
from cuepost.adapters.storage.postgres_connecting import Driver, connect
from cuepost.adapters.storage.postgres_session import DRIVER_ERRORS
from cuepost.adapters.storage.records.postgres_queue import WORK_CHANNEL
from cuepost.log_lines import log_store_error
from cuepost.ports.dispatch import DeliveryKey, Lane
from cuepost.ports.system import Clock

log = logging.getLogger("cuepost.store")

BATCHING_SECONDS = 0.003
RECONNECT_SECONDS = 1.0
TIMEOUT_SECONDS = 5.0
APPLICATION_NAME = "cuepost wake-up"
# PostgreSQL accepts payloads of less than 8,000 bytes.
LANES_AT_ONCE = 200
DELIVERIES_AT_ONCE = 160
_LENGTH_OF_ID = 32


class Listener(Protocol):
    def work_for(self, lanes: Collection[Lane]) -> None: ...
    def hand_over(self, worker: UUID, keys: Sequence[DeliveryKey]) -> None: ...
    def workers_changed(self) -> None:
        """Also called when wake-ups may have been missed."""
        ...


class PostgresWakeup(NoHandover):
    """Hands over to the workers of other processes; by itself, it is the handover of a process that
    sends nothing."""

    def __init__(self, url: str, clock: Clock) -> None:
        self._url = url
        self._clock = clock
        self._lanes: set[Lane] = set()
        self._deliveries: defaultdict[UUID, list[DeliveryKey]] = defaultdict(list)
        self._has_pending = asyncio.Event()
        self.is_connected = False

    def reaches(self, worker: UUID) -> bool:
        return self.is_connected

    def hand_over(self, worker: UUID, keys: Sequence[DeliveryKey]) -> None:
        self._deliveries[worker] += keys
        self._has_pending.set()

    def work_for(self, lanes: Collection[Lane]) -> None:
        self._lanes.update(lanes)
        self._has_pending.set()

    async def run(self, listener: Listener | None) -> None:
        """Runs until it is cancelled, and reconnects after a lost connection."""
        while True:
            try:
                await self._talk(listener)
            except DRIVER_ERRORS as error:
                log_store_error(log, "wakeup_connection_lost", error, "wake-up")
                await self._clock.wait(RECONNECT_SECONDS)

    async def _talk(self, listener: Listener | None) -> None:
        connection = await connect(
            self._url, application_name=APPLICATION_NAME, command_timeout=TIMEOUT_SECONDS
        )
        try:
            # A wake-up that the server loses when it crashes costs no more than any lost one.
            await connection.execute("SET synchronous_commit = off")
            # Without it, a process that only listens would not notice a lost connection.
            connection.add_termination_listener(lambda _: self._has_pending.set())
            if listener is not None:
                await _listen(connection, listener)
            self.is_connected = True
            # Sends wake-ups that are left from the previous connection.
            self._has_pending.set()
            while not connection.is_closed():
                await self._has_pending.wait()
                await self._send(connection)
                await self._clock.wait(BATCHING_SECONDS)
            raise ConnectionResetError("the server closed the connection")
        finally:
            self.is_connected = False
            connection.terminate()

    async def _send(self, connection: Driver) -> None:
        self._has_pending.clear()
        while self._lanes or self._deliveries:
            if self._lanes:
                await self._send_lanes(connection)
            for worker, keys in list(self._deliveries.items()):
                some = [f"{account}:{each.hex}" for account, each in keys[:DELIVERIES_AT_ONCE]]
                await _notify(connection, " ".join((worker.hex, *some)))
                del keys[: len(some)]
                if not keys:
                    del self._deliveries[worker]

    async def _send_lanes(self, connection: Driver) -> None:
        """A lane that is announced while this runs has newer work, and is sent again."""
        lanes = sorted(self._lanes)[:LANES_AT_ONCE]
        self._lanes.difference_update(lanes)
        try:
            await _notify(connection, " ".join(map(str, lanes)))
        except BaseException:
            self._lanes.update(lanes)
            raise


async def _listen(connection: Driver, listener: Listener) -> None:
    def hear(*notification: object) -> None:
        payload = str(notification[3])
        first, _, rest = payload.partition(" ")
        if not payload:
            listener.workers_changed()
        elif len(first) == _LENGTH_OF_ID:
            keys = (each.partition(":") for each in rest.split())
            found = [(int(account), id_from(bytes.fromhex(each))) for account, _, each in keys]
            listener.hand_over(UUID(first), found)
        else:
            listener.work_for([int(lane) for lane in payload.split()])

    await connection.add_listener(WORK_CHANNEL, hear)
    # Wake-ups from before may have been missed.
    listener.workers_changed()


async def _notify(connection: Driver, payload: str) -> None:
    await connection.execute("SELECT pg_notify($1, $2)", WORK_CHANNEL, payload)
