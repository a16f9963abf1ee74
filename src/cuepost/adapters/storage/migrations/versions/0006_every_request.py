"""Every request on record, results that outlive re-exports, and reports compared by content."""

import sqlalchemy as sa
from alembic import op

from cuepost.adapters.storage.types import Id, Instant

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

# Answers that were kept before keys were told apart belong to no key.
NO_KEY = "00000000-0000-0000-0000-000000000000"


def upgrade() -> None:
    _extend_list("attempts", "outcome", "'protocol_error'", "'interrupted', 'superseded'")
    _extend_list("deliveries", "reason", "'project_access_expired'", "'access_closed'")
    _extend_list("queue", "stop_reason", "'project_access_expired'", "'access_closed'")
    if op.get_bind().dialect.name == "sqlite":
        # Read the edited definitions again before anything else uses them.
        op.execute("PRAGMA writable_schema = RESET")
    op.add_column("attempts", sa.Column("url", sa.Text(), nullable=True))
    op.add_column("attempts", sa.Column("held_by", Id(), nullable=True))
    op.add_column("deliveries", sa.Column("delivered_at", Instant(), nullable=True))
    op.add_column(
        "bulk_retries",
        sa.Column("include_delivered", sa.Boolean(), nullable=False, server_default=sa.false()),
    )
    op.add_column("projects", sa.Column("exported_at", Instant(), nullable=True))
    op.add_column("reports", sa.Column("digest", sa.LargeBinary(), nullable=True))
    _remember_first_acknowledgements()
    _find_the_undelivered()
    _remember_finished_exports()
    _tell_keys_apart()
    _cut_padding_off_hints()


def _extend_list(table: str, column: str, last: str, more: str) -> None:
    """Allow more values in a column; every row that is stored fits the longer list too."""
    connection, name = op.get_bind(), f"{table}_{column}"
    if connection.dialect.name == "sqlite":
        # The way that SQLite documents for constraints: no row is touched, however many there are.
        op.execute("PRAGMA writable_schema = ON")
        connection.execute(
            sa.text(
                "UPDATE sqlite_schema SET sql = replace(sql, :before, :after) "
                "WHERE type = 'table' AND name = :name"
            ),
            {"before": f"{last})", "after": f"{last}, {more})", "name": table},
        )
        return
    inspector = sa.inspect(connection)
    [written] = [c for c in inspector.get_check_constraints(table) if c["name"] == name]
    values = [part for part in written["sqltext"].split("'")[1::2] if part != "{}"]
    listed = ", ".join([*(f"'{value}'" for value in values), more])
    op.drop_constraint(op.f(name), table, type_="check")
    op.create_check_constraint(op.f(name), table, f"{column} IN ({listed})")


def _remember_first_acknowledgements() -> None:
    """Of deliveries that were sent again; of the others `finished_at` tells it."""
    op.execute(
        """
        UPDATE deliveries SET delivered_at = (
            SELECT min(started_at) FROM attempts
            WHERE attempts.account_id = deliveries.account_id
                AND attempts.delivery_id = deliveries.id
                AND attempts.budget < deliveries.budget
                AND attempts.outcome = 'delivered'
        ) WHERE budget > 1
        """
    )


def _find_the_undelivered() -> None:
    is_undelivered = sa.text("final_status = 'failed' AND delivered_at IS NULL")
    for name, columns in (
        ("deliveries_undelivered", ["account_id", "final_status", "id"]),
        (
            "deliveries_undelivered_by_webhook",
            ["account_id", "webhook_id", "final_status", "id"],
        ),
    ):
        op.create_index(
            name,
            "deliveries",
            columns,
            unique=False,
            sqlite_where=is_undelivered,
            postgresql_where=is_undelivered,
        )


def _remember_finished_exports() -> None:
    op.execute(
        """
        UPDATE projects SET exported_at = coalesce(
            (
                SELECT max(occurred_at) FROM events
                WHERE events.account_id = projects.account_id
                    AND events.project_id = projects.id AND events.type = 'project.completed'
            ),
            CASE
                WHEN status = 'completed' THEN updated_at
                WHEN EXISTS (
                    SELECT 1 FROM artifacts
                    WHERE artifacts.account_id = projects.account_id
                        AND artifacts.project_id = projects.id
                ) THEN updated_at
            END
        ) WHERE deleted_at IS NULL
        """
    )


def _tell_keys_apart() -> None:
    op.execute("CREATE TABLE kept_answers AS SELECT * FROM idempotency_keys")
    op.drop_table("idempotency_keys")
    op.create_table(
        "idempotency_keys",
        sa.Column("account_id", Id(), nullable=False),
        sa.Column("key_id", Id(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.LargeBinary(), nullable=False),
        sa.Column("sealed_answer", sa.LargeBinary(), nullable=True),
        sa.Column("created_at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("account_id", "key_id", "key", name=op.f("idempotency_keys_pkey")),
    )
    op.create_index(
        op.f("idempotency_keys_by_created_at"), "idempotency_keys", ["created_at"], unique=False
    )
    is_sqlite = op.get_bind().dialect.name == "sqlite"
    no_key = "zeroblob(16)" if is_sqlite else f"CAST('{NO_KEY}' AS uuid)"
    op.execute(
        "INSERT INTO idempotency_keys "
        '(account_id, key_id, "key", fingerprint, sealed_answer, created_at) '
        f'SELECT account_id, {no_key}, "key", fingerprint, sealed_answer, created_at '
        "FROM kept_answers"
    )
    op.drop_table("kept_answers")


def _cut_padding_off_hints() -> None:
    """Attempts are too many to be touched here; their hints are cut when they are read."""
    op.execute("UPDATE signing_secrets SET hint = rtrim(hint, '=')")
    op.execute("UPDATE inbox_messages SET verified_with = replace(verified_with, '=', '')")
