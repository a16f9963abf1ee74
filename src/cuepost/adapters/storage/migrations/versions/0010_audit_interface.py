"""An audit entry names the interface by which the call came in, as the API does."""

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

# From PostgreSQL 18 on NOT NULL is a constraint with a name, which keeps that of the old column.
_RENAME_NOT_NULL = """
    DO $$ BEGIN
        IF EXISTS (SELECT FROM pg_constraint WHERE conname = 'audit_entries_door_not_null'
                   AND conrelid = 'audit_entries'::regclass) THEN
            ALTER TABLE audit_entries
            RENAME CONSTRAINT audit_entries_door_not_null TO audit_entries_interface_not_null;
        END IF;
    END $$
"""


def upgrade() -> None:
    op.execute("ALTER TABLE audit_entries RENAME COLUMN door TO interface")
    if op.get_bind().dialect.name == "postgresql":
        op.execute(_RENAME_NOT_NULL)
