"""Tables that keep a request from being executed twice, and the audit log."""

import sqlalchemy as sa

from cuepost.adapters.storage import codes
from cuepost.adapters.storage.tables.metadata import metadata
from cuepost.adapters.storage.types import Code, Id, Instant

SILENCE_REASON = Code(codes.SILENCE_REASON)

reports = sa.Table(
    "reports",
    metadata,
    sa.Column("account", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("report_id", sa.Text, primary_key=True),
    sa.Column("event_id", Id),
    # Why no receiver was notified; an event of that kind has the same reason.
    sa.Column("reason", SILENCE_REASON),
    sa.Column("created_at", Instant, nullable=False),
    # Of the reported content; NULL in reports from before this column existed.
    sa.Column("digest", sa.LargeBinary),
    sa.Index(None, "created_at", postgresql_using="brin"),
    sqlite_with_rowid=False,
)

idempotency_keys = sa.Table(
    "idempotency_keys",
    metadata,
    sa.Column("account_id", Id, primary_key=True),
    sa.Column("key_id", Id, primary_key=True),
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("fingerprint", sa.LargeBinary, nullable=False),
    sa.Column("sealed_answer", sa.LargeBinary),
    sa.Column("created_at", Instant, nullable=False, index=True),
)

audit_entries = sa.Table(
    "audit_entries",
    metadata,
    sa.Column("account_id", Id, primary_key=True),
    sa.Column("id", Id, primary_key=True),
    sa.Column("action", sa.Text, nullable=False),
    sa.Column("actor", sa.Text, nullable=False),
    sa.Column("interface", sa.Text, nullable=False),
    sa.Column("address", sa.Text),
    sa.Column("subject", sa.Text),
    sa.Column("details", sa.JSON, nullable=False),
    sa.Column("actor_name", sa.Text),
    sa.Index(None, "id"),
)
