"""Why TLS failed, with each attempt that ended so."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "attempts",
        sa.Column(
            "tls_fault",
            sa.Text(),
            sa.CheckConstraint(
                "tls_fault IN ('certificate_expired', 'certificate_not_yet_valid', "
                "'certificate_wrong_host', 'certificate_unknown_authority', 'tls_too_old', "
                "'tls_handshake_failed')",
                name=op.f("attempts_tls_fault"),
            ),
            nullable=True,
        ),
    )
