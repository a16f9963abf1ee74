"""The rows of an account as they are exported to a file and loaded into another database.

A row has no account, and refers to endpoints by their ids, because the numbers of both differ in
the other database. Ids are text, instants are milliseconds since the epoch, bytes are base64, and
values of closed lists are their names.
"""

from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import cache
from typing import Any
from uuid import UUID

from cuepost.adapters.storage.columns import (
    BYTES,
    EXCEPTIONS,
    ID,
    INSTANT,
    ColumnType,
    Convert,
    kind_of,
)
from cuepost.adapters.storage.records.counts import COUNTED
from cuepost.adapters.storage.records.keys import OWNED, owner_in
from cuepost.adapters.storage.records.parking import SHIFT, unparked
from cuepost.adapters.storage.session import AccountNumbers, StoreSession, numbers_of
from cuepost.adapters.storage.sql import Sql, quoted
from cuepost.domain.instants import from_millis, to_millis
from cuepost.ports.moves import CannotBeRead, Chunk

AT_ONCE = 200
_DELIVERY = (
    "id endpoint event_id event_type project_id trigger status attempt_count budget delivered_at"
)
_ATTEMPT = (
    "number started_at duration_ms dns_ms connect_ms tls_ms first_byte_ms signed_with "
    "request_headers response_status response_headers response_body response_truncated outcome "
    "tls_fault url"
)
# The order matters: rows that need an endpoint come after it, and the queue keeps old partitions
# from being dropped. The mark of a listener is a transaction number of the other database, which is
# harmless: all earlier events are moved as well, and no earlier event can be written here.
COLUMNS: Mapping[str, tuple[str, ...]] = {
    table: tuple(columns.split())
    for table, columns in {
        "endpoints": "id url events description enabled created_at updated_at last_delivered_at "
        "failing_since deleted_at troubled_since last_failed_at",
        "queue": f"{_DELIVERY} due_at attempts_made worker stop_reason",
        "signing_secrets": "webhook_id version sealed hint created_at expires_at",
        "api_keys": "id name digest scopes created_at expires_at revoked_at last_used_at",
        "users": "id email password_hash created_at role wants_alerts external_id oidc_issuer "
        "oidc_subject",
        "alerts": "webhook_id kind since finished_at changes announced",
        "alert_mails": "webhook_id kind since number user_id due_at attempts_made",
        "sessions": "id user_id digest created_at expires_at by_link",
        "sign_in_links": "id user_id digest expires_at",
        "invitations": "id digest role email created_at expires_at",
        "invitation_mails": "id sealed due_at expires_at attempts_made",
        "portal_links": "id user_id digest created_at expires_at ends_at used_at return_url "
        "accent logo_url colour_scheme",
        "secret_reveals": "id webhook_id digest sealed expires_at",
        "inboxes": "token answer created_at",
        "inbox_messages": "id headers body verified_with answer",
        "projects": "id name kind origin status stage access_expires_at created_at updated_at "
        "deleted_at access_ended_at exported_at search_name",
        "artifacts": "project_id position kind name key content_type size_bytes",
        "listeners": "id name events created_at served_at settled mark_at mark_number "
        "acknowledged last_position",
        "listener_events": "listener_id event_id position",
        "bulk_retries": "id webhook_id since until statuses state total retried skipped position "
        "created_at finished_at include_delivered",
        "idempotency_keys": "key_id key fingerprint sealed_answer created_at",
        "audit_entries": "id action actor interface address subject details actor_name",
        "reports": "report_id event_id reason created_at digest",
        "events": "id type project_id occurred_at body reason",
        "deliveries": f"{_DELIVERY} reason finished_at {_ATTEMPT}",
        "delivery_counts": f"endpoint minutes since {' '.join(COUNTED)}",
        "attempts": f"delivery_id budget {_ATTEMPT} trigger held_by",
    }.items()
}
_OWNERS = ("account", "account_id")


def _order(table: str) -> tuple[str, ...]:
    """The columns that identify a row within its account."""
    if table == "endpoints":
        return ("id",)
    return tuple(column for column in OWNED[table] if column not in _OWNERS)


@cache
def _page(table: str, is_first: bool) -> Sql:
    order, owner = _order(table), owner_in(table)
    # The name of a column determines its type; the few exceptions get another name.
    columns = ", ".join(
        f'"{column}" AS {EXCEPTIONS.get((table, column), f"{chr(34)}{column}{chr(34)}")}'
        for column in COLUMNS[table]
    )
    behind = ", ".join(f":last_{column}" for column in order)
    condition = f"AND ({quoted(order)}) > ({behind})" if not is_first else ""
    in_order = f"ORDER BY {quoted(order)} LIMIT {AT_ONCE}" if order else ""
    return Sql(f"SELECT {columns} FROM {table} WHERE {owner} = :owner {condition} {in_order}")


async def chunks(session: StoreSession, account_id: UUID) -> AsyncIterator[Chunk]:
    numbers = await numbers_of(session, account_id)
    for table, columns in COLUMNS.items():
        writers = [_writer(table, column, numbers) for column in columns]
        async for rows in _pages(session, table, account_id, numbers.account):
            yield Chunk(table, columns, [_converted(writers, row) for row in rows])


async def _pages(
    session: StoreSession, table: str, account_id: UUID, number: int
) -> AsyncIterator[Sequence[Sequence[Any]]]:
    order = _order(table)
    owner = number if owner_in(table) == "account" else account_id
    places = [COLUMNS[table].index(column) for column in order]
    rows = await session.fetch(_page(table, True), owner=owner)
    while rows:
        yield rows
        if not order or len(rows) < AT_ONCE:
            return
        last = {
            f"last_{column}": rows[-1][place] for column, place in zip(order, places, strict=True)
        }
        rows = await session.fetch(_page(table, False), owner=owner, **last)


async def rows_of(session: StoreSession, account_id: UUID, chunk: Chunk) -> list[dict[str, Any]]:
    """The rows of a chunk as this database stores them."""
    table, columns = chunk.table, chunk.columns
    if COLUMNS.get(table) != columns:
        raise CannotBeRead(f"These are not the columns of {table}.")
    numbers = await numbers_of(session, account_id)
    owner = owner_in(table)
    owned = {owner: numbers.account if owner == "account" else account_id}
    readers = [_reader(table, column, numbers) for column in columns]
    try:
        converted = [_converted(readers, row) for row in chunk.rows]
    except (KeyError, TypeError, ValueError) as error:
        raise CannotBeRead(f"A row of {table} cannot be read.") from error
    return [owned | dict(zip(columns, row, strict=True)) for row in converted]


def _converted(converters: Sequence[Convert], row: Sequence[Any]) -> list[Any]:
    return [
        None if value is None else convert(value)
        for convert, value in zip(converters, row, strict=True)
    ]


def _writer(table: str, column: str, numbers: AccountNumbers) -> Convert:
    if column == "endpoint":
        return lambda number: str(numbers.webhook_of[number])
    if (table, column) == ("queue", "due_at"):
        return lambda due_at: to_millis(unparked(due_at))
    return _WRITERS.get(kind_of(table, column), _same)


def _reader(table: str, column: str, numbers: AccountNumbers) -> Convert:
    if column == "endpoint":
        return lambda webhook_id: numbers.endpoint_of[UUID(webhook_id)]
    if (table, column) == ("queue", "due_at"):
        return lambda millis: from_millis(millis) + SHIFT
    kind = kind_of(table, column)
    if kind.postgres_type == "smallint":
        return lambda word: _known(kind.to_postgres, word)
    return _READERS.get(kind, _same)


def _known(code: Convert | None, word: str) -> str:
    """Raises KeyError for a value that this version does not know."""
    assert code is not None
    code(word)
    return word


def _base64(value: bytes) -> str:
    return b64encode(value).decode()


def _same(value: Any) -> Any:
    return value


_WRITERS: Mapping[ColumnType, Convert] = {ID: str, INSTANT: to_millis, BYTES: _base64}
_READERS: Mapping[ColumnType, Convert] = {ID: UUID, INSTANT: from_millis, BYTES: b64decode}
