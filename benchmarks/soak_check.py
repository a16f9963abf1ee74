"""Checks the delivery guarantees of a long run, some thousand events at a time.

Every guarantee that is checked here is about one event, so checking slices misses nothing.
"""

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from benchmarks.population import Populated
from cuepost.adapters.storage.tables.history import CANCEL_REASON, OUTCOME, STATUS
from tests.support.history_checker import History, Seen, StoredAttempt, StoredDelivery

EVENTS_AT_ONCE = 5_000
_OF_ACCOUNT = (
    "account = (SELECT number FROM accounts WHERE accounts.id = ?) AND event_id BETWEEN ? AND ?"
)
_MADE = ("budget", "number", "outcome", "started_at", "duration_ms")
_NO_ATTEMPT = ", ".join("NULL" for _ in _MADE)
_ENDED = (
    "SELECT deliveries.id, endpoints.id, event_id, status, reason, "
    f"{', '.join(f'deliveries.{name}' for name in _MADE)} FROM deliveries "
    f"JOIN endpoints ON endpoints.number = endpoint WHERE {_OF_ACCOUNT}"
)
_LIVE = (
    f"SELECT queue.id, endpoints.id, event_id, status, NULL, {_NO_ATTEMPT} FROM queue "
    f"JOIN endpoints ON endpoints.number = endpoint WHERE {_OF_ACCOUNT}"
)
_ATTEMPTS = (
    f"SELECT delivery_id, {', '.join(_MADE)} FROM attempts WHERE (delivery_id, account) IN ("
    f"SELECT id, account FROM deliveries WHERE {_OF_ACCOUNT} "
    f"UNION ALL SELECT id, account FROM queue WHERE {_OF_ACCOUNT})"
)
_RECEIVED = "SELECT at, path, head, body, status FROM received WHERE event BETWEEN ? AND ?"


@dataclass(slots=True)
class Found:
    """`repeated` counts requests that their receiver had already acknowledged."""

    broken: list[str] = field(default_factory=list)
    deliveries: int = 0
    requests: int = 0
    repeated: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Files:
    store: sqlite3.Connection
    received: sqlite3.Connection
    populated: Populated

    def history(self, events: Sequence[str], pauses: tuple[float, ...]) -> History:
        first, last = events[0], events[-1]
        return History(
            acknowledged=set(events),
            seen=list(self._seen(first, last)),
            deliveries=list(self._deliveries(first, last)),
            secrets={key: [secret] for key, secret in self.populated.secret_of.items()},
            pauses=pauses,
        )

    def _seen(self, first: str, last: str) -> Iterator[Seen]:
        for at, path, head, body, status in self.received.execute(_RECEIVED, (first, last)):
            _, *fields = head.decode("ascii").split("\r\n")
            headers = dict(each.split(": ", 1) for each in fields)
            yield Seen(at, self.populated.webhook_of[path], headers, body, status)

    def _deliveries(self, first: str, last: str) -> Iterator[StoredDelivery]:
        for account in self.populated.account_of.values():
            bounds = (account.bytes, UUID(first).bytes, UUID(last).bytes)
            made: dict[bytes, list[StoredAttempt]] = defaultdict(list)
            for key, *attempt in self.store.execute(_ATTEMPTS, bounds * 2):
                made[key].append(_attempt(*attempt))
            for key, webhook, event, status, reason, *ended_with in (
                *self.store.execute(_ENDED, bounds),
                *self.store.execute(_LIVE, bounds),
            ):
                if ended_with[1] is not None:
                    made[key].append(_attempt(*ended_with))
                yield StoredDelivery(
                    str(UUID(bytes=key)),
                    str(UUID(bytes=webhook)),
                    str(UUID(bytes=event)),
                    str(STATUS.meanings[status]),
                    CANCEL_REASON.meanings[reason],
                    tuple(made[key]),
                )

    def orphans(self, found: Found) -> Iterator[str]:
        """Rows outside of every slice, which belong to no acknowledged event."""
        for connection, tables, counted in (
            (self.store, ("deliveries", "queue"), found.deliveries),
            (self.received, ("received",), found.requests),
        ):
            counts = [connection.execute(f"SELECT count(*) FROM {name}") for name in tables]
            there = sum(count for [(count,)] in counts)
            if there != counted:
                names = " and ".join(tables)
                yield f"{there} rows in {names}, of which {counted} belong to acknowledged events"


def _attempt(
    budget: int, number: int, outcome: int, started_at: int, duration_ms: float
) -> StoredAttempt:
    meaning = str(OUTCOME.meanings[outcome])
    return StoredAttempt(budget, number, meaning, started_at / 1000, duration_ms)


def looked_at(
    store_file: Path,
    received_file: Path,
    populated: Populated,
    acknowledged: set[str],
    pauses: tuple[float, ...],
) -> Found:
    found, events = Found(), sorted(acknowledged)
    with (
        closing(sqlite3.connect(store_file)) as store,
        closing(sqlite3.connect(received_file)) as received,
    ):
        files = Files(store, received, populated)
        for place in range(0, len(events), EVENTS_AT_ONCE):
            history = files.history(events[place : place + EVENTS_AT_ONCE], pauses)
            found.broken += history.broken_promises()
            found.deliveries += len(history.deliveries)
            found.requests += len(history.seen)
            found.repeated += history.duplicates()
            found.outcomes.update(each.status for each in history.deliveries)
        found.broken += files.orphans(found)
        [(verdict,)] = store.execute("PRAGMA quick_check(1)")
        if verdict != "ok":
            found.broken.append(f"the store is damaged: {verdict}")
    return found
