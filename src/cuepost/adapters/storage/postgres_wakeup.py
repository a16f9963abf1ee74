"""Tells other processes at the same PostgreSQL that endpoints have work, and hears it from them.

Announcements are sent apart from the transactions: `NOTIFY` inside a transaction makes all commits
of the database wait for one another. After each one those that follow are gathered for a moment.
An announcement that is lost costs at most one poll of the dispatcher.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterator, Sequence

import asyncpg

from cuepost.adapters.storage.postgres_session import CONNECTION_ERRORS
from cuepost.ports.dispatch import Lane
from cuepost.ports.runtime import Clock

log = logging.getLogger("cuepost.store")

CHANNEL = "cuepost_work"
GATHERING_SECONDS = 0.003
RECONNECT_SECONDS = 1.0
PATIENCE_SECONDS = 5.0
APPLICATION_NAME = "cuepost wake-up"
LARGEST_ANNOUNCEMENT = 200

Listener = Callable[[Collection[Lane]], None]


class PostgresWakeup:
    def __init__(self, url: str, clock: Clock) -> None:
        self._url = url
        self._clock = clock
        self._gathered: set[Lane] = set()
        self._something = asyncio.Event()

    def announce(self, endpoints: Collection[Lane]) -> None:
        self._gathered.update(endpoints)
        self._something.set()

    async def run(self, hear: Listener) -> None:
        """For as long as it is not cancelled; a lost connection is made again."""
        while True:
            try:
                await self._talk(hear)
            except (asyncpg.PostgresError, *CONNECTION_ERRORS) as error:
                log.warning("event=wakeup_connection_lost error=%s", error)
                await self._clock.wait(RECONNECT_SECONDS)

    async def _talk(self, hear: Listener) -> None:
        connection = await asyncpg.connect(
            self._url,
            timeout=PATIENCE_SECONDS,
            command_timeout=PATIENCE_SECONDS,
            server_settings={"application_name": APPLICATION_NAME},
        )
        try:
            # Who only listens would never find out otherwise.
            connection.add_termination_listener(lambda _: self._something.set())
            await connection.add_listener(CHANNEL, lambda *heard: hear(_parsed(str(heard[3]))))
            # Something may have been announced while nobody listened.
            hear(())
            while not connection.is_closed():
                await self._something.wait()
                await self._send(connection)
                await self._clock.wait(GATHERING_SECONDS)
            raise ConnectionResetError("the server has ended it")
        finally:
            connection.terminate()

    async def _send(self, connection: "asyncpg.Connection[asyncpg.Record]") -> None:
        self._something.clear()
        gathered, self._gathered = self._gathered, set()
        try:
            for chunk in _chunks(gathered):
                payload = " ".join(str(endpoint) for endpoint in chunk)
                await connection.execute("SELECT pg_notify($1, $2)", CHANNEL, payload)
        except BaseException:
            self.announce(gathered)
            raise


def _chunks(gathered: Collection[Lane]) -> Iterator[Sequence[Lane]]:
    ordered = list(gathered)
    for start in range(0, len(ordered), LARGEST_ANNOUNCEMENT):
        yield ordered[start : start + LARGEST_ANNOUNCEMENT]


def _parsed(payload: str) -> Collection[Lane]:
    return [int(each) for each in payload.split()]
