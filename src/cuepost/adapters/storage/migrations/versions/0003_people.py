"""Users, sessions, sign-in links, secrets to be shown once, and test inboxes."""

import sqlalchemy as sa
from alembic import op

from cuepost.adapters.storage.types import Id, Instant

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

ANSWERS = "answer IN ('ok', 'not_found', 'server_error', 'slow', 'close', 'redirect')"


def upgrade() -> None:
    _users()
    _sessions()
    _sign_in_links()
    _secret_reveals()
    _inboxes()


def _users() -> None:
    op.create_table(
        "users",
        sa.Column("account_id", Id(), nullable=False),
        sa.Column("id", Id(), nullable=False),
        sa.Column("email", sa.Text(), nullable=True),
        sa.Column("password_hash", sa.Text(), nullable=True),
        sa.Column("created_at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("account_id", "id", name=op.f("users_pkey")),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("users_by_email"), "users", ["email"], unique=True)


def _sessions() -> None:
    op.create_table(
        "sessions",
        sa.Column("account_id", Id(), nullable=False),
        sa.Column("id", Id(), nullable=False),
        sa.Column("user_id", Id(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", Instant(), nullable=False),
        sa.Column("expires_at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("account_id", "id", name=op.f("sessions_pkey")),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("sessions_by_digest"), "sessions", ["digest"], unique=True)
    op.create_index(op.f("sessions_by_expires_at"), "sessions", ["expires_at"], unique=False)


def _sign_in_links() -> None:
    op.create_table(
        "sign_in_links",
        sa.Column("account_id", Id(), nullable=False),
        sa.Column("id", Id(), nullable=False),
        sa.Column("user_id", Id(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("expires_at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("account_id", "id", name=op.f("sign_in_links_pkey")),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("sign_in_links_by_digest"), "sign_in_links", ["digest"], unique=True)
    op.create_index(
        op.f("sign_in_links_by_expires_at"), "sign_in_links", ["expires_at"], unique=False
    )


def _secret_reveals() -> None:
    op.create_table(
        "secret_reveals",
        sa.Column("account_id", Id(), nullable=False),
        sa.Column("id", Id(), nullable=False),
        sa.Column("webhook_id", Id(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("expires_at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("account_id", "id", name=op.f("secret_reveals_pkey")),
        sqlite_with_rowid=False,
    )
    op.create_index(
        op.f("secret_reveals_by_account_id_digest"),
        "secret_reveals",
        ["account_id", "digest"],
        unique=True,
    )
    op.create_index(
        op.f("secret_reveals_by_expires_at"), "secret_reveals", ["expires_at"], unique=False
    )


def _inboxes() -> None:
    op.create_table(
        "inboxes",
        sa.Column("account_id", Id(), nullable=False),
        sa.Column("token", sa.Text(), nullable=False),
        sa.Column("answer", sa.Text(), nullable=False),
        sa.Column("created_at", Instant(), nullable=False),
        sa.CheckConstraint(ANSWERS, name=op.f("inboxes_answer")),
        sa.PrimaryKeyConstraint("account_id", name=op.f("inboxes_pkey")),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("inboxes_by_token"), "inboxes", ["token"], unique=True)
    op.create_table(
        "inbox_messages",
        sa.Column("account_id", Id(), nullable=False),
        sa.Column("id", Id(), nullable=False),
        sa.Column("headers", sa.LargeBinary(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("verified_with", sa.Text(), nullable=False),
        sa.Column("answer", sa.Text(), nullable=False),
        sa.CheckConstraint(ANSWERS, name=op.f("inbox_messages_answer")),
        sa.PrimaryKeyConstraint("account_id", "id", name=op.f("inbox_messages_pkey")),
    )
    op.create_index(op.f("inbox_messages_by_id"), "inbox_messages", ["id"], unique=False)
