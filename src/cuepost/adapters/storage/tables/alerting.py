"""Alerts of endpoints, and e-mails about them that are still to be sent."""

import sqlalchemy as sa

from cuepost.adapters.storage.tables.metadata import metadata, one_of, partial_index
from cuepost.adapters.storage.types import Id, Instant
from cuepost.domain.alert import AlertKind

alerts = sa.Table(
    "alerts",
    metadata,
    sa.Column("account_id", Id, primary_key=True),
    sa.Column("webhook_id", Id, primary_key=True),
    sa.Column("kind", sa.Text, primary_key=True),
    sa.Column("since", Instant, primary_key=True),
    sa.Column("finished_at", Instant),
    # Changes that are to be announced, and those that were.
    sa.Column("changes", sa.Integer, nullable=False),
    sa.Column("announced", sa.Integer, nullable=False),
    one_of("kind", AlertKind),
    sqlite_with_rowid=False,
)
partial_index(
    "alerts_open",
    alerts.c.account_id,
    alerts.c.webhook_id,
    alerts.c.kind,
    where=alerts.c.finished_at.is_(None),
    unique=True,
)
partial_index("alerts_unannounced", alerts.c.since, where=alerts.c.announced < alerts.c.changes)

alert_mails = sa.Table(
    "alert_mails",
    metadata,
    sa.Column("account_id", Id, primary_key=True),
    sa.Column("webhook_id", Id, primary_key=True),
    sa.Column("kind", sa.Text, primary_key=True),
    sa.Column("since", Instant, primary_key=True),
    # Which change of the alert it is about.
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("user_id", Id, primary_key=True),
    sa.Column("due_at", Instant, nullable=False, index=True),
    sa.Column("attempts_made", sa.Integer, nullable=False),
    sqlite_with_rowid=False,
)
