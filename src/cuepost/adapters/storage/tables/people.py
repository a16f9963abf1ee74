"""Users of the pages, their sign-ins, secrets that are shown once, and test inboxes."""

import sqlalchemy as sa

from cuepost.adapters.storage.tables.metadata import metadata, one_of
from cuepost.adapters.storage.types import Id, Instant
from cuepost.domain.access import Role
from cuepost.domain.inbox import InboxAnswer
from cuepost.domain.portal import ColourScheme

users = sa.Table(
    "users",
    metadata,
    sa.Column("account_id", Id, primary_key=True),
    sa.Column("id", Id, primary_key=True),
    sa.Column("email", sa.Text),
    sa.Column("password_hash", sa.Text),
    sa.Column("created_at", Instant, nullable=False),
    sa.Column("role", sa.Text, nullable=False, server_default=Role.OWNER),
    sa.Column("wants_alerts", sa.Boolean, nullable=False, server_default=sa.true()),
    # What a host product calls the user.
    sa.Column("external_id", sa.Text),
    sa.Index(None, "account_id", "external_id", unique=True),
    sa.Column("oidc_issuer", sa.Text),
    sa.Column("oidc_subject", sa.Text),
    # A sign-in form has only the e-mail, so it must be unique.
    sa.Index(None, "email", unique=True),
    sqlite_with_rowid=False,
)

sessions = sa.Table(
    "sessions",
    metadata,
    sa.Column("account_id", Id, primary_key=True),
    sa.Column("id", Id, primary_key=True),
    sa.Column("user_id", Id, nullable=False),
    sa.Column("digest", sa.LargeBinary, nullable=False),
    sa.Column("created_at", Instant, nullable=False),
    sa.Column("expires_at", Instant, nullable=False, index=True),
    sa.Column("by_link", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Index(None, "digest"),
    sqlite_with_rowid=False,
)

sign_in_links = sa.Table(
    "sign_in_links",
    metadata,
    sa.Column("account_id", Id, primary_key=True),
    sa.Column("id", Id, primary_key=True),
    sa.Column("user_id", Id, nullable=False),
    sa.Column("digest", sa.LargeBinary, nullable=False),
    sa.Column("expires_at", Instant, nullable=False, index=True),
    sa.Index(None, "digest"),
    sqlite_with_rowid=False,
)

invitations = sa.Table(
    "invitations",
    metadata,
    sa.Column("account_id", Id, primary_key=True),
    sa.Column("id", Id, primary_key=True),
    sa.Column("digest", sa.LargeBinary, nullable=False),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("email", sa.Text),
    sa.Column("created_at", Instant, nullable=False),
    sa.Column("expires_at", Instant, nullable=False, index=True),
    one_of("role", Role),
    sa.Index(None, "digest"),
    sqlite_with_rowid=False,
)

invitation_mails = sa.Table(
    "invitation_mails",
    metadata,
    sa.Column("account_id", Id, primary_key=True),
    # The id of the invitation.
    sa.Column("id", Id, primary_key=True),
    sa.Column("sealed", sa.LargeBinary, nullable=False),
    sa.Column("due_at", Instant, nullable=False, index=True),
    sa.Column("expires_at", Instant, nullable=False, index=True),
    sa.Column("attempts_made", sa.Integer, nullable=False),
    sqlite_with_rowid=False,
)

portal_links = sa.Table(
    "portal_links",
    metadata,
    sa.Column("account_id", Id, primary_key=True),
    # The session that the link opens has the same id.
    sa.Column("id", Id, primary_key=True),
    sa.Column("user_id", Id, nullable=False),
    sa.Column("digest", sa.LargeBinary, nullable=False),
    sa.Column("created_at", Instant, nullable=False),
    sa.Column("expires_at", Instant, nullable=False),
    sa.Column("ends_at", Instant, nullable=False, index=True),
    sa.Column("used_at", Instant),
    sa.Column("return_url", sa.Text),
    sa.Column("accent", sa.Text),
    sa.Column("logo_url", sa.Text),
    sa.Column("colour_scheme", sa.Text, nullable=False),
    one_of("colour_scheme", ColourScheme),
    sa.Index(None, "digest"),
    sqlite_with_rowid=False,
)

sign_in_attempts = sa.Table(
    "sign_in_attempts",
    metadata,
    # A digest of the e-mail or of the address that is counted.
    sa.Column("key", sa.LargeBinary, primary_key=True),
    sa.Column("count", sa.Integer, nullable=False),
    sa.Column("ends_at", Instant, nullable=False, index=True),
    sqlite_with_rowid=False,
)

secret_reveals = sa.Table(
    "secret_reveals",
    metadata,
    sa.Column("account_id", Id, primary_key=True),
    sa.Column("id", Id, primary_key=True),
    sa.Column("webhook_id", Id, nullable=False),
    sa.Column("digest", sa.LargeBinary, nullable=False),
    sa.Column("sealed", sa.LargeBinary, nullable=False),
    sa.Column("expires_at", Instant, nullable=False, index=True),
    sa.Index(None, "account_id", "digest", unique=True),
    sqlite_with_rowid=False,
)

inboxes = sa.Table(
    "inboxes",
    metadata,
    sa.Column("account_id", Id, primary_key=True),
    sa.Column("token", sa.Text, nullable=False),
    sa.Column("answer", sa.Text, nullable=False),
    sa.Column("created_at", Instant, nullable=False),
    one_of("answer", InboxAnswer),
    sa.Index(None, "token"),
    sqlite_with_rowid=False,
)

inbox_messages = sa.Table(
    "inbox_messages",
    metadata,
    sa.Column("account_id", Id, primary_key=True),
    sa.Column("id", Id, primary_key=True),
    sa.Column("headers", sa.LargeBinary, nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
    sa.Column("verified_with", sa.Text, nullable=False),
    sa.Column("answer", sa.Text, nullable=False),
    one_of("answer", InboxAnswer),
    sa.Index(None, "id"),
)
