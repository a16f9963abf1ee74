"""An inbox store over any database that runs one statement as one durable transaction."""

import os
import threading
import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from cuepost_receiver.stores import statements
from cuepost_receiver.stores.protocol import Claim, DeadLetter

Connection = TypeVar("Connection")


class SqlStore(ABC, Generic[Connection]):
    """One connection per process, opened on first use and used by one thread at a time."""

    locking = ""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._owner = 0
        # Connections inherited by a fork belong to the parent; they are neither used nor closed.
        self._inherited: list[Connection] = []

    def add(self, event_id: str, body: bytes, now: float) -> bool:
        return self._changes(statements.INSERT, event_id=event_id, body=body, now=now)

    def claim(self, now: float, until: float) -> Claim | None:
        statement = statements.CLAIM.format(locking=self.locking)
        rows = self._rows(statement, now=now, until=until, lease=uuid.uuid4().hex)
        if not rows:
            return None
        [(event_id, lease, attempt, body)] = rows
        return Claim(event_id, lease, attempt, bytes(body))

    def renew(self, claim: Claim, until: float) -> bool:
        return self._changes(statements.RENEW, **_held(claim), until=until)

    def finish(self, claim: Claim, now: float) -> bool:
        return self._changes(statements.FINISH, **_held(claim), now=now, empty=b"")

    def postpone(self, claim: Claim, due_at: float, error: str) -> bool:
        return self._changes(statements.POSTPONE, **_held(claim), due_at=due_at, error=error)

    def bury(self, claim: Claim, now: float, error: str) -> bool:
        return self._changes(statements.BURY, **_held(claim), now=now, error=error)

    def dead_letters(self, limit: int = 100) -> list[DeadLetter]:
        rows = self._rows(statements.DEAD_LETTERS, limit=limit)
        return [
            DeadLetter(event_id, attempts, error, ended_at, bytes(body))
            for event_id, attempts, error, ended_at, body in rows
        ]

    def revive(self, event_id: str, now: float) -> bool:
        return self._changes(statements.REVIVE, event_id=event_id, now=now)

    def discard(self, event_id: str, now: float) -> bool:
        return self._changes(statements.DISCARD, event_id=event_id, now=now, empty=b"")

    def forget(self, before: float) -> int:
        return len(self._rows(statements.FORGET, before=before))

    def counts(self) -> dict[str, int]:
        return dict(self._rows(statements.COUNTS))

    def close(self) -> None:
        with self._lock:
            if self._connection is not None and self._owner == os.getpid():
                self._close(self._connection)
            self._connection = None

    def _changes(self, statement: str, **parameters: Any) -> bool:
        return bool(self._rows(statement, **parameters))

    def _rows(self, statement: str, **parameters: Any) -> list[Any]:
        with self._lock:
            return self._execute(self._connected(), statement, parameters)

    def _connected(self) -> Connection:
        if self._connection is not None and self._owner != os.getpid():
            self._inherited.append(self._connection)
            self._connection = None
        if self._connection is None:
            self._connection, self._owner = self._open(), os.getpid()
        return self._connection

    def _drop(self) -> None:
        """Discard the connection after a failure."""
        self._connection = None

    @abstractmethod
    def _open(self) -> Connection:
        """Open a connection and create the table if needed."""

    @abstractmethod
    def _execute(
        self, connection: Connection, statement: str, parameters: Mapping[str, Any]
    ) -> list[Any]:
        """Run and commit a statement; returns its rows."""

    @abstractmethod
    def _close(self, connection: Connection) -> None: ...


def _held(claim: Claim) -> dict[str, str]:
    return {"event_id": claim.event_id, "lease": claim.lease}
