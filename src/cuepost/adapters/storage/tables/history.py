"""Events, deliveries, attempts, and the queue of what is still to be sent."""

import sqlalchemy as sa

from cuepost.adapters.storage.tables.metadata import metadata, one_of, partial_index
from cuepost.adapters.storage.types import Id, Instant
from cuepost.domain.attempt import Outcome, TlsFault
from cuepost.domain.bulk_retry import BulkRetryState
from cuepost.domain.delivery import FINAL, LIVE, CancelReason, Trigger

events = sa.Table(
    "events",
    metadata,
    sa.Column("account_id", Id, primary_key=True),
    sa.Column("id", Id, primary_key=True),
    sa.Column("type", sa.Text, nullable=False),
    sa.Column("project_id", Id),
    sa.Column("occurred_at", Instant, nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
    sa.Column("reason", sa.Text),
    sa.Index(None, "account_id", "project_id", "id"),
    sa.Index(None, "account_id", "type", "id"),
    postgresql_partition_by="RANGE (id)",
)

deliveries = sa.Table(
    "deliveries",
    metadata,
    sa.Column("account_id", Id, primary_key=True),
    sa.Column("id", Id, primary_key=True),
    sa.Column("webhook_id", Id, nullable=False),
    sa.Column("event_id", Id, nullable=False),
    sa.Column("event_type", sa.Text, nullable=False),
    sa.Column("project_id", Id),
    sa.Column("trigger", sa.Text, nullable=False),
    sa.Column("final_status", sa.Text),
    sa.Column("reason", sa.Text),
    sa.Column("attempt_count", sa.Integer, nullable=False),
    sa.Column("budget", sa.Integer, nullable=False),
    sa.Column("finished_at", Instant),
    # Of a delivery that was sent again: when an earlier budget was acknowledged.
    sa.Column("delivered_at", Instant),
    one_of("final_status", FINAL),
    one_of("reason", CancelReason),
    one_of("trigger", Trigger),
    sa.CheckConstraint("(final_status IS NULL) = (finished_at IS NULL)", name="ended"),
    sa.CheckConstraint(
        "(reason IS NOT NULL) = (final_status IS NOT NULL AND final_status = 'cancelled')",
        name="cancelled",
    ),
    sa.Index(None, "account_id", "webhook_id", "id"),
    sa.Index(None, "account_id", "project_id", "id"),
    sa.Index(None, "account_id", "event_id", "id"),
    sa.Index(None, "account_id", "event_type", "id"),
    sqlite_with_rowid=False,
    postgresql_partition_by="RANGE (id)",
)
partial_index(
    "deliveries_by_status",
    deliveries.c.account_id,
    deliveries.c.final_status,
    deliveries.c.id,
    where=deliveries.c.final_status.is_not(None),
)
partial_index(
    "deliveries_by_webhook_status",
    deliveries.c.account_id,
    deliveries.c.webhook_id,
    deliveries.c.final_status,
    deliveries.c.id,
    where=deliveries.c.final_status.is_not(None),
)
# Spelled out wherever it is asked for: the planner has to see that the partial indexes fit.
UNDELIVERED = sa.and_(
    deliveries.c.final_status == sa.literal_column("'failed'"), deliveries.c.delivered_at.is_(None)
)
# They have the columns of the indexes by status, or SQLite would prefer those.
partial_index(
    "deliveries_undelivered",
    deliveries.c.account_id,
    deliveries.c.final_status,
    deliveries.c.id,
    where=UNDELIVERED,
)
partial_index(
    "deliveries_undelivered_by_webhook",
    deliveries.c.account_id,
    deliveries.c.webhook_id,
    deliveries.c.final_status,
    deliveries.c.id,
    where=UNDELIVERED,
)

queue = sa.Table(
    "queue",
    metadata,
    sa.Column("account_id", Id, primary_key=True),
    sa.Column("delivery_id", Id, primary_key=True),
    sa.Column("webhook_id", Id, nullable=False),
    sa.Column("event_id", Id, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("due_at", Instant, nullable=False),
    sa.Column("trigger", sa.Text, nullable=False),
    sa.Column("budget", sa.Integer, nullable=False),
    sa.Column("attempts_made", sa.Integer, nullable=False),
    sa.Column("attempt_count", sa.Integer, nullable=False),
    sa.Column("lease_token", Id),
    sa.Column("stop_reason", sa.Text),
    one_of("state", LIVE),
    one_of("stop_reason", CancelReason),
    sa.CheckConstraint("(state = 'delivering') = (lease_token IS NOT NULL)", name="leased"),
    sa.CheckConstraint("stop_reason IS NULL OR state = 'delivering'", name="stopped"),
    sqlite_with_rowid=False,
    postgresql_with={"fillfactor": 70, "autovacuum_vacuum_scale_factor": 0.02},
)
# Either is part of every statement that looks for more than one delivery, spelled out and not as a
# parameter: the planner has to see that the partial indexes fit.
WAITING = queue.c.state != sa.literal_column("'delivering'")
IN_FLIGHT = queue.c.lease_token.is_not(None)
HALVES = (WAITING, IN_FLIGHT)
# What is in flight is in one index alone: it comes and goes most often, and is never much.
for _name, _columns in (
    ("queue_by_lane", ("webhook_id", "state", "due_at")),
    ("queue_by_due_at", ("due_at",)),
    ("queue_by_status", ("account_id", "state", "delivery_id")),
    ("queue_by_webhook_status", ("account_id", "webhook_id", "state", "delivery_id")),
):
    partial_index(_name, *(queue.c[column] for column in _columns), where=WAITING)
partial_index("queue_in_flight", queue.c.lease_token, where=IN_FLIGHT)

workers = sa.Table(
    "workers",
    metadata,
    sa.Column("id", Id, primary_key=True),
    sa.Column("alive_until", Instant, nullable=False),
    sqlite_with_rowid=False,
)

lanes = sa.Table(
    "lanes",
    metadata,
    sa.Column("webhook_id", Id, primary_key=True),
    sa.Column("worker_id", Id, nullable=False, index=True),
    sqlite_with_rowid=False,
)

attempts = sa.Table(
    "attempts",
    metadata,
    sa.Column("account_id", Id, primary_key=True),
    sa.Column("delivery_id", Id, primary_key=True),
    sa.Column("budget", sa.Integer, primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("trigger", sa.Text, nullable=False),
    sa.Column("started_at", Instant, nullable=False),
    sa.Column("duration_ms", sa.Double, nullable=False),
    sa.Column("dns_ms", sa.Double),
    sa.Column("connect_ms", sa.Double),
    sa.Column("tls_ms", sa.Double),
    sa.Column("first_byte_ms", sa.Double),
    sa.Column("signed_with", sa.Text, nullable=False),
    sa.Column("request_headers", sa.LargeBinary, nullable=False),
    sa.Column("response_status", sa.Integer),
    sa.Column("response_headers", sa.LargeBinary, nullable=False),
    sa.Column("response_body", sa.LargeBinary, nullable=False),
    sa.Column("response_truncated", sa.Boolean, nullable=False),
    sa.Column("outcome", sa.Text, nullable=False),
    sa.Column("tls_fault", sa.Text),
    # Attempts from before it was kept have none.
    sa.Column("url", sa.Text),
    # Of an interrupted attempt: the worker that held it, so that its late result finds this row.
    sa.Column("held_by", Id),
    one_of("trigger", Trigger),
    one_of("outcome", Outcome),
    one_of("tls_fault", TlsFault),
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

PARTITIONED = (events, deliveries, attempts)
