"""Accounts, keys, projects with their files, and endpoints with their secrets."""

import sqlalchemy as sa

from cuepost.adapters.storage import codes
from cuepost.adapters.storage.tables.metadata import metadata, one_of, partial_index
from cuepost.adapters.storage.types import Code, Id, Instant
from cuepost.domain.access import AccountState

STATUS = Code(codes.PROJECT_STATUS)
STAGE = Code(codes.STAGE)

# Compared byte by byte on both engines, so that an index finds what begins with a text.
PLAIN_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")

accounts = sa.Table(
    "accounts",
    metadata,
    # History refers to accounts and endpoints by number; no number is used twice.
    sa.Column("number", sa.Integer, sa.Identity(), primary_key=True),
    sa.Column("id", Id, nullable=False, unique=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("webhooks_enabled", sa.Boolean, nullable=False),
    sa.Column("created_at", Instant, nullable=False),
    sa.Column("state", sa.Text, nullable=False, server_default=AccountState.LIVE),
    # What the operator's own product calls the account.
    sa.Column("external_id", PLAIN_TEXT),
    # The name as it is searched for; an account from before the column has none for a while.
    sa.Column("search_name", PLAIN_TEXT),
    sa.Column("erasing_since", Instant),
    one_of("state", AccountState),
    sa.Index(None, "external_id", unique=True),
    sa.Index(None, "search_name", "id"),
    sqlite_autoincrement=True,
)
partial_index(
    "accounts_by_erasing_since",
    accounts.c.erasing_since,
    where=accounts.c.erasing_since.is_not(None),
)

partial_index(
    "accounts_without_access", accounts.c.id, where=sa.literal_column("NOT webhooks_enabled")
)

account_moves = sa.Table(
    "account_moves",
    metadata,
    sa.Column("account_id", Id, primary_key=True),
    # Of the code that releases the copy; the code itself is in the store that the account leaves.
    sa.Column("digest", sa.LargeBinary, nullable=False),
    sa.Column("token", sa.Text),
    # The import that loads it.
    sa.Column("run_id", Id),
    sa.Column("created_at", Instant, nullable=False),
    sqlite_with_rowid=False,
)

api_keys = sa.Table(
    "api_keys",
    metadata,
    sa.Column("id", Id, primary_key=True),
    sa.Column("account_id", Id, index=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("digest", sa.LargeBinary, nullable=False),
    sa.Column("scopes", sa.Text, nullable=False),
    sa.Column("created_at", Instant, nullable=False),
    sa.Column("expires_at", Instant),
    sa.Column("revoked_at", Instant),
    sa.Column("last_used_at", Instant),
)

projects = sa.Table(
    "projects",
    metadata,
    sa.Column("account_id", Id, primary_key=True),
    sa.Column("id", Id, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("kind", Code(codes.PROJECT_KIND), nullable=False),
    sa.Column("origin", Code(codes.ORIGIN), nullable=False),
    sa.Column("status", STATUS, nullable=False),
    sa.Column("stage", STAGE, nullable=False),
    sa.Column("access_expires_at", Instant),
    sa.Column("created_at", Instant, nullable=False),
    sa.Column("updated_at", Instant, nullable=False),
    sa.Column("deleted_at", Instant),
    # When the end of the access window was processed; a change of the project clears it.
    sa.Column("access_ended_at", Instant),
    # When the export that made the current files was completed.
    sa.Column("exported_at", Instant),
    # As accounts have it; a maintenance job fills it for projects of an older version.
    sa.Column("search_name", PLAIN_TEXT),
    # A milestone names the project alone, so its account must be found by the project's id. The
    # planner has to know that it finds one: see decision 0048.
    sa.Index(None, "id", unique=True),
    sqlite_with_rowid=False,
    # No index has a column that a milestone changes; with room in its page, an update writes none.
    postgresql_with={"fillfactor": 70},
)
partial_index(
    "projects_by_access_expires_at",
    projects.c.access_expires_at,
    where=sa.and_(
        projects.c.access_expires_at.is_not(None),
        projects.c.access_ended_at.is_(None),
        projects.c.deleted_at.is_(None),
    ),
)
partial_index(
    "projects_by_search_name",
    projects.c.account_id,
    projects.c.search_name,
    projects.c.id,
    where=projects.c.deleted_at.is_(None),
)
partial_index("projects_without_search_name", projects.c.id, where=projects.c.search_name.is_(None))

artifacts = sa.Table(
    "artifacts",
    metadata,
    sa.Column("account_id", Id, primary_key=True),
    sa.Column("project_id", Id, primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("key", sa.Text, nullable=False),
    sa.Column("content_type", sa.Text, nullable=False),
    sa.Column("size_bytes", sa.BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

endpoints = sa.Table(
    "endpoints",
    metadata,
    sa.Column("number", sa.Integer, sa.Identity(), primary_key=True),
    sa.Column("account_id", Id, nullable=False),
    sa.Column("id", Id, nullable=False),
    sa.Column("url", sa.Text, nullable=False),
    sa.Column("events", sa.Text, nullable=False),
    sa.Column("description", sa.Text, nullable=False),
    sa.Column("enabled", sa.Boolean, nullable=False),
    sa.Column("created_at", Instant, nullable=False),
    sa.Column("updated_at", Instant, nullable=False),
    sa.Column("last_delivered_at", Instant),
    sa.Column("failing_since", Instant),
    sa.Column("deleted_at", Instant),
    # The first failed attempt since the last acknowledged one, and the last failed one.
    sa.Column("troubled_since", Instant),
    sa.Column("last_failed_at", Instant),
    sa.CheckConstraint("deleted_at IS NULL OR NOT enabled", name="deleted"),
    sa.UniqueConstraint("account_id", "id"),
    sqlite_autoincrement=True,
)
partial_index(
    "endpoints_by_deleted_at",
    endpoints.c.deleted_at,
    where=endpoints.c.deleted_at.is_not(None),
)

signing_secrets = sa.Table(
    "signing_secrets",
    metadata,
    sa.Column("account_id", Id, primary_key=True),
    sa.Column("webhook_id", Id, primary_key=True),
    sa.Column("version", sa.Integer, primary_key=True),
    sa.Column("sealed", sa.LargeBinary, nullable=False),
    sa.Column("hint", sa.Text, nullable=False),
    sa.Column("created_at", Instant, nullable=False),
    sa.Column("expires_at", Instant),
    sqlite_with_rowid=False,
)
