"""The deliveries of an event are found by its millisecond, so they need no index by event.

The version before finds them without the index too, in more time.
"""

from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None
oldest_code = "0024"


def upgrade() -> None:
    op.drop_index(op.f("deliveries_by_account_event_id_id"), "deliveries")
