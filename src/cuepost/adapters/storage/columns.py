"""The type of each column, and how its values are stored in each database.

The name of a column determines its type, with a few exceptions. A statement that reads one of
these gives it the name of its type: `SELECT status AS project_status FROM projects`.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import Any

from cuepost.adapters.quick_ids import id_from
from cuepost.adapters.storage import codes
from cuepost.domain.delivery import DeliveryStatus
from cuepost.domain.instants import from_millis, to_millis

Convert = Callable[[Any], Any]
Converters = Sequence[tuple[int, Convert]]
"""The conversions of some columns, by their places in a row."""


@dataclass(frozen=True, slots=True, eq=False)
class ColumnType:
    """A conversion is None if the driver takes and returns the value unchanged."""

    postgres_type: str
    to_sqlite: Convert | None = None
    from_sqlite: Convert | None = None
    to_postgres: Convert | None = None
    from_postgres: Convert | None = None

    @property
    def is_number(self) -> bool:
        return self.postgres_type in {"integer", "bigint", "smallint"}


def converted(rows: Sequence[Any], converters: Converters) -> list[list[Any]]:
    """The rows, with the values of some columns converted; NULL stays NULL."""
    made = []
    for row in rows:
        values = list(row)
        for place, convert in converters:
            if (value := values[place]) is not None:
                values[place] = convert(value)
        made.append(values)
    return made


def _code(of: codes.Codes) -> ColumnType:
    write, read = of.codes.__getitem__, of.meanings.__getitem__
    return ColumnType("smallint", write, read, write, read)


bytes_of: Convert = attrgetter("bytes")
# Cached, because most instants of a batch are equal.
cached_millis: Convert = lru_cache(maxsize=1024)(to_millis)
ID = ColumnType("uuid", bytes_of, id_from)
INSTANT = ColumnType("timestamptz", cached_millis, from_millis)
INTEGER = ColumnType("integer")
BIGINT = ColumnType("bigint")
DOUBLE = ColumnType("double precision")
# Converts members of enumerations to plain strings, because SQLite's driver is slow with them.
TEXT = ColumnType("text", str)
BYTES = ColumnType("bytea")
BOOLEAN = ColumnType("boolean", None, bool)
JSON = ColumnType("json", json.dumps, json.loads, json.dumps, json.loads)

_NAMES: Mapping[ColumnType, str] = {
    ID: (
        "id account_id project_id event_id delivery_id webhook_id user_id key_id listener_id "
        "worker worker_id run_id held_by settled bulk_position"
    ),
    INSTANT: (
        "created_at updated_at deleted_at expires_at revoked_at last_used_at access_expires_at "
        "access_ended_at exported_at last_delivered_at failing_since troubled_since last_failed_at "
        "occurred_at delivered_at finished_at started_at due_at alive_until served_at mark_at "
        "ends_at since until erasing_since used_at"
    ),
    INTEGER: (
        "number account endpoint attempt_count budget attempts_made version count total retried "
        "skipped response_status changes announced minutes delivered failed cancelled abandoned "
        "http_2xx http_3xx "
        "http_4xx http_5xx timeout connect_error tls_error blocked_destination protocol_error "
        "latency_0 latency_1 latency_2 latency_3 latency_4 latency_5 latency_6 latency_7 "
        "latency_8 latency_9 latency_10"
    ),
    BIGINT: "size_bytes mark_number acknowledged last_position position",
    DOUBLE: "duration_ms dns_ms connect_ms tls_ms first_byte_ms",
    TEXT: (
        "name scopes url events description hint report_id key action actor interface address "
        "subject email password_hash token answer verified_with statuses state kind content_type "
        "signed_with external_id search_name role actor_name return_url accent "
        "logo_url colour_scheme oidc_issuer oidc_subject"
    ),
    BYTES: (
        "digest sealed body fingerprint sealed_answer headers request_headers response_headers "
        "response_body"
    ),
    BOOLEAN: (
        "webhooks_enabled enabled by_link leaving accepts include_delivered response_truncated "
        "wants_alerts"
    ),
    JSON: "details",
    _code(codes.STATUS): "status",
    _code(codes.TRIGGER): "trigger",
    _code(codes.CANCEL_REASON): "reason stop_reason",
    _code(codes.EVENT_TYPE): "type event_type",
    _code(codes.OUTCOME): "outcome",
    _code(codes.TLS_FAULT): "tls_fault",
    _code(codes.SILENCE_REASON): "silence_reason",
    _code(codes.PROJECT_STATUS): "project_status",
    _code(codes.PROJECT_KIND): "project_kind",
    _code(codes.ORIGIN): "origin",
    _code(codes.STAGE): "stage",
}
KINDS: Mapping[str, ColumnType] = {
    name: kind for kind, names in _NAMES.items() for name in names.split()
}
# Columns whose name has another type elsewhere, with the name that has their type.
EXCEPTIONS: Mapping[tuple[str, str], str] = {
    ("projects", "status"): "project_status",
    ("projects", "kind"): "project_kind",
    ("events", "reason"): "silence_reason",
    ("reports", "reason"): "silence_reason",
    ("bulk_retries", "position"): "bulk_position",
    ("artifacts", "position"): "number",
    ("sign_in_attempts", "key"): "digest",
}

# History is partitioned on PostgreSQL, by the day in these ids.
PARTITION_KEYS: Mapping[str, str] = {
    "events": "id",
    "deliveries": "id",
    "attempts": "delivery_id",
}

# Every statement that looks for more than one live delivery contains one of these as a literal,
# not as a parameter, because the planner has to see that a partial index applies.
WAITING = f"queue.status != {codes.STATUS[DeliveryStatus.DELIVERING]}"
IN_FLIGHT = "queue.worker IS NOT NULL"
NOT_DELIVERED = f"deliveries.status != {codes.STATUS[DeliveryStatus.DELIVERED]}"


def kind_of(table: str, column: str) -> ColumnType:
    return KINDS[EXCEPTIONS.get((table, column), column)]
