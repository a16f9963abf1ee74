"""Counts the history of a store that is older than the counts, once it has the form of today."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from cuepost.adapters.storage.schema import TO_BE_COUNTED, TO_BE_MOVED
from cuepost.adapters.storage.types import Instant
from cuepost.domain.instants import from_millis

ROWS_AT_ONCE = 1_000
# As they were when counting began; the order of the first columns is that of the codes.
_ENDS = {4: "delivered", 5: "failed", 6: "cancelled"}
_OUTCOMES = {
    1: "http_2xx",
    3: "http_3xx",
    4: "timeout",
    5: "blocked_destination",
    6: "connect_error",
    7: "tls_error",
    8: "blocked_destination",
    9: "protocol_error",
}
_HTTP_ERROR, _FIRST_SERVER_ERROR = 2, 500
_BOUNDS_MS = (10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000)
COUNTED = (
    *("delivered", "failed", "cancelled", "abandoned"),
    *("http_2xx", "http_3xx", "http_4xx", "http_5xx", "timeout", "connect_error", "tls_error"),
    *("blocked_destination", "protocol_error"),
    *(f"latency_{place}" for place in range(len(_BOUNDS_MS) + 1)),
)
_MINUTES = (5, 60)
_ENDED = """
    SELECT account, endpoint, id, status, attempt_count, outcome, response_status, duration_ms
    FROM deliveries
    """
_ATTEMPTS = """
    SELECT attempts.account, coalesce(deliveries.endpoint, queue.endpoint), attempts.delivery_id,
        attempts.outcome, attempts.response_status, attempts.duration_ms
    FROM attempts
    LEFT JOIN deliveries
        ON deliveries.account = attempts.account AND deliveries.id = attempts.delivery_id
    LEFT JOIN queue ON queue.account = attempts.account AND queue.id = attempts.delivery_id
    """
_Row = dict[str, int]
_Key = tuple[int, int, int, int]


def mark(connection: sa.Connection) -> None:
    """Where there is history, the upgrade is not over before it is counted."""
    tables = [*("deliveries", "attempts"), *(f"old_{table}" for table in TO_BE_MOVED)]
    inspector = sa.inspect(connection)
    for table in tables:
        if (
            inspector.has_table(table)
            and connection.execute(sa.text(f"SELECT 1 FROM {table} LIMIT 1")).first()
        ):
            connection.execute(sa.text(f"CREATE TABLE {TO_BE_COUNTED} (id INTEGER)"))
            return


def count_all(connection: sa.Connection) -> str | None:
    """In one transaction; what it has done, or None where there was nothing to do."""
    if not sa.inspect(connection).has_table(TO_BE_COUNTED):
        return None
    rows: dict[_Key, _Row] = {}
    for account, endpoint, delivery_id, status, attempts, *attempt in _read(connection, _ENDED):
        counted = [_ENDS[status]]
        if _ENDS[status] == "cancelled" and attempts:
            counted.append("abandoned")
        _add(rows, (account, endpoint, delivery_id), [*counted, *_of_attempt(*attempt)])
    for account, endpoint, delivery_id, *attempt in _read(connection, _ATTEMPTS):
        if endpoint is not None:
            _add(rows, (account, endpoint, delivery_id), list(_of_attempt(*attempt)))
    _write(connection, rows)
    connection.execute(sa.text(f"DROP TABLE {TO_BE_COUNTED}"))
    return f"table=delivery_counts rows={len(rows)} state=done"


def _read(connection: sa.Connection, query: str) -> Iterator[Sequence[Any]]:
    yield from connection.execute(sa.text(query).execution_options(yield_per=ROWS_AT_ONCE))


def _of_attempt(
    outcome: int | None, response_status: int | None, duration_ms: float | None
) -> Iterator[str]:
    name = _OUTCOMES.get(outcome or 0)
    if outcome == _HTTP_ERROR:
        is_server = (response_status or 0) >= _FIRST_SERVER_ERROR
        name = "http_5xx" if is_server else "http_4xx"
    if name is not None and duration_ms is not None:
        yield name
        yield f"latency_{bisect_left(_BOUNDS_MS, duration_ms)}"


def _add(rows: dict[_Key, _Row], of: tuple[int, int, bytes | UUID], counted: list[str]) -> None:
    account, endpoint, delivery_id = of
    identifier = delivery_id.bytes if isinstance(delivery_id, UUID) else delivery_id
    millis = int.from_bytes(identifier[:6])
    for minutes in _MINUTES:
        key = (account, endpoint, minutes, millis - millis % (minutes * 60_000))
        row = rows.setdefault(key, dict.fromkeys(COUNTED, 0))
        for name in counted:
            row[name] += 1


def _write(connection: sa.Connection, rows: dict[_Key, _Row]) -> None:
    names = ("account", "endpoint", "minutes", "since", *COUNTED)
    table = sa.table(
        "delivery_counts",
        *(sa.column(name, Instant() if name == "since" else sa.Integer()) for name in names),
    )
    made = [
        dict(zip(names, (account, endpoint, minutes, from_millis(since)), strict=False)) | row
        for (account, endpoint, minutes, since), row in rows.items()
    ]
    for place in range(0, len(made), ROWS_AT_ONCE):
        connection.execute(sa.insert(table), made[place : place + ROWS_AT_ONCE])
