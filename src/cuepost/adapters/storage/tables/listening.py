"""Listeners, and the part of their streams that is still needed."""

import sqlalchemy as sa

from cuepost.adapters.storage.tables.metadata import metadata
from cuepost.adapters.storage.types import Id, Instant

listeners = sa.Table(
    "listeners",
    metadata,
    sa.Column("account_id", Id, primary_key=True),
    sa.Column("id", Id, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("events", sa.Text, nullable=False),
    sa.Column("created_at", Instant, nullable=False),
    sa.Column("served_at", Instant, nullable=False, index=True),
    sa.Column("settled", Id, nullable=False),
    sa.Column("mark_at", Instant, nullable=False),
    sa.Column("mark_number", sa.BigInteger, nullable=False),
    sa.Column("acknowledged", sa.BigInteger, nullable=False),
    sa.Column("last_position", sa.BigInteger, nullable=False),
    sa.CheckConstraint("acknowledged <= last_position", name="acknowledged"),
    sa.Index(None, "account_id", "name", unique=True),
    sqlite_with_rowid=False,
)

# Position 0 marks events from before the listener, which are not in its stream.
listener_events = sa.Table(
    "listener_events",
    metadata,
    sa.Column("account_id", Id, primary_key=True),
    sa.Column("listener_id", Id, primary_key=True),
    sa.Column("event_id", Id, primary_key=True),
    sa.Column("position", sa.BigInteger, nullable=False),
    sa.Index(None, "account_id", "listener_id", "position"),
    sqlite_with_rowid=False,
)
