"""Events, live deliveries, ended deliveries and attempts.

A delivery has one row: in `queue` while it is live, in `deliveries` once it has ended. An ended
delivery carries its last counted attempt; all other attempts are in `attempts`. These rows refer to
accounts and endpoints by their numbers, because their keys are in every index.
"""

import sqlalchemy as sa

from cuepost.adapters.storage import codes
from cuepost.adapters.storage.records.counts import COUNTED
from cuepost.adapters.storage.tables.metadata import metadata, one_of, partial_index
from cuepost.adapters.storage.types import Code, Id, Instant
from cuepost.domain.bulk_retry import BulkRetryState
from cuepost.domain.delivery import DeliveryStatus

STATUS = Code(codes.STATUS)
TRIGGER = Code(codes.TRIGGER)
CANCEL_REASON = Code(codes.CANCEL_REASON)
EVENT_TYPE = Code(codes.EVENT_TYPE)
OUTCOME = Code(codes.OUTCOME)
TLS_FAULT = Code(codes.TLS_FAULT)
SILENCE_REASON = Code(codes.SILENCE_REASON)

events = sa.Table(
    "events",
    metadata,
    sa.Column("account", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("id", Id, primary_key=True),
    sa.Column("type", EVENT_TYPE, nullable=False),
    sa.Column("project_id", Id),
    sa.Column("occurred_at", Instant, nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
    sa.Column("reason", SILENCE_REASON),
    sa.Index(None, "account", "project_id", "id"),
    sa.Index(None, "account", "type", "id"),
    sqlite_with_rowid=False,
    postgresql_partition_by="RANGE (id)",
)


def _delivery_columns() -> list[sa.Column[object]]:
    """The columns of both live and ended deliveries."""
    return [
        sa.Column("account", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("id", Id, primary_key=True),
        sa.Column("endpoint", sa.Integer, nullable=False),
        sa.Column("event_id", Id, nullable=False),
        sa.Column("event_type", EVENT_TYPE, nullable=False),
        sa.Column("project_id", Id),
        sa.Column("trigger", TRIGGER, nullable=False),
        sa.Column("status", STATUS, nullable=False),
        sa.Column("attempt_count", sa.Integer, nullable=False),
        sa.Column("budget", sa.Integer, nullable=False),
        # The first acknowledgement of a delivery that was sent again.
        sa.Column("delivered_at", Instant),
    ]


def _attempt_columns(*, nullable: bool) -> list[sa.Column[object]]:
    """The request and its result; nullable because an ended delivery may have no attempt."""
    return [
        sa.Column("number", sa.Integer, nullable=nullable, primary_key=not nullable),
        sa.Column("started_at", Instant, nullable=nullable),
        sa.Column("duration_ms", sa.Double, nullable=nullable),
        sa.Column("dns_ms", sa.Double),
        sa.Column("connect_ms", sa.Double),
        sa.Column("tls_ms", sa.Double),
        sa.Column("first_byte_ms", sa.Double),
        sa.Column("signed_with", sa.Text, nullable=nullable),
        sa.Column("request_headers", sa.LargeBinary, nullable=nullable),
        sa.Column("response_status", sa.Integer),
        sa.Column("response_headers", sa.LargeBinary, nullable=nullable),
        sa.Column("response_body", sa.LargeBinary, nullable=nullable),
        sa.Column("response_truncated", sa.Boolean, nullable=nullable),
        sa.Column("outcome", OUTCOME, nullable=nullable),
        sa.Column("tls_fault", TLS_FAULT),
        # NULL in attempts from before this column existed.
        sa.Column("url", sa.Text),
    ]


deliveries = sa.Table(
    "deliveries",
    metadata,
    *_delivery_columns(),
    sa.Column("reason", CANCEL_REASON),
    sa.Column("finished_at", Instant, nullable=False),
    *_attempt_columns(nullable=True),
    sa.Index(None, "account", "endpoint", "status", "id"),
    sa.Index(None, "account", "event_type", "id"),
    sqlite_with_rowid=False,
    postgresql_partition_by="RANGE (id)",
)
NOT_DELIVERED = deliveries.c.status != STATUS.literal(DeliveryStatus.DELIVERED)
partial_index(
    "deliveries_not_delivered",
    deliveries.c.account,
    deliveries.c.status,
    deliveries.c.id,
    where=NOT_DELIVERED,
)

queue = sa.Table(
    "queue",
    metadata,
    *_delivery_columns(),
    sa.Column("due_at", Instant, nullable=False),
    sa.Column("attempts_made", sa.Integer, nullable=False),
    # The worker that holds it, while it is being delivered.
    sa.Column("worker", Id),
    # Set while it is being delivered: it gets no further attempt.
    sa.Column("stop_reason", CANCEL_REASON),
    sqlite_with_rowid=False,
    postgresql_with={"fillfactor": 70, "autovacuum_vacuum_scale_factor": 0.02},
)
# Every statement that looks for more than one delivery contains one of these as a literal, not as
# a parameter, because the planner has to see that a partial index applies.
WAITING = queue.c.status != STATUS.literal(DeliveryStatus.DELIVERING)
IN_FLIGHT = queue.c.worker.is_not(None)
# Deliveries in flight are in one index only, because they change most often and are few.
for _name, _columns in (
    ("queue_by_lane", ("endpoint", "status", "due_at")),
    ("queue_by_due_at", ("due_at",)),
    ("queue_by_status", ("account", "status", "id")),
    ("queue_by_endpoint_status", ("account", "endpoint", "status", "id")),
):
    partial_index(_name, *(queue.c[column] for column in _columns), where=WAITING)
partial_index("queue_in_flight", queue.c.worker, where=IN_FLIGHT)

workers = sa.Table(
    "workers",
    metadata,
    sa.Column("id", Id, primary_key=True),
    sa.Column("alive_until", Instant, nullable=False),
    # It only finishes its attempts in flight; other workers take the lanes.
    sa.Column("leaving", sa.Boolean, nullable=False, server_default=sa.false()),
    sqlite_with_rowid=False,
)

lanes = sa.Table(
    "lanes",
    metadata,
    sa.Column("endpoint", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("worker_id", Id, nullable=False, index=True),
    # Whether new deliveries may be leased to the worker at once, because no older one waits.
    sa.Column("accepts", sa.Boolean, nullable=False, server_default=sa.false()),
    sqlite_with_rowid=False,
)

attempts = sa.Table(
    "attempts",
    metadata,
    sa.Column("account", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("delivery_id", Id, primary_key=True),
    sa.Column("budget", sa.Integer, primary_key=True),
    *_attempt_columns(nullable=False),
    sa.Column("trigger", TRIGGER, nullable=False),
    # Of an interrupted attempt: the worker that held it, so that its late result finds this row.
    sa.Column("held_by", Id),
    sqlite_with_rowid=False,
    postgresql_partition_by="RANGE (delivery_id)",
)

bulk_retries = sa.Table(
    "bulk_retries",
    metadata,
    sa.Column("account_id", Id, primary_key=True),
    sa.Column("id", Id, primary_key=True),
    sa.Column("webhook_id", Id, nullable=False),
    sa.Column("since", Instant, nullable=False),
    sa.Column("until", Instant, nullable=False),
    sa.Column("statuses", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("total", sa.Integer, nullable=False),
    sa.Column("retried", sa.Integer, nullable=False),
    sa.Column("skipped", sa.Integer, nullable=False),
    sa.Column("position", Id),
    sa.Column("created_at", Instant, nullable=False),
    sa.Column("finished_at", Instant),
    sa.Column("include_delivered", sa.Boolean, nullable=False, server_default=sa.false()),
    one_of("state", BulkRetryState),
    sa.CheckConstraint("(state = 'running') = (finished_at IS NULL)", name="ended"),
)
partial_index(
    "bulk_retries_running",
    bulk_retries.c.state,
    where=bulk_retries.c.state == sa.literal_column("'running'"),
)

# Deliveries are counted in the interval in which they began, by the instant in their ids.
delivery_counts = sa.Table(
    "delivery_counts",
    metadata,
    sa.Column("account", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("endpoint", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("minutes", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("since", Instant, primary_key=True),
    *(sa.Column(name, sa.Integer, nullable=False) for name in COUNTED),
    sa.Index(None, "minutes", "since"),
    sqlite_with_rowid=False,
    # A row is changed again and again until its interval is over.
    postgresql_with={"fillfactor": 50},
)

PARTITIONED = (events, deliveries, attempts)
