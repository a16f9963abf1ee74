"""An index of the accounts without access to webhooks, which the operator's pages show."""

from cuepost.adapters.storage.migrations.concurrent_index import create_index_concurrently

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None
oldest_code = "0024"


def upgrade() -> None:
    create_index_concurrently(
        "accounts_without_access", "accounts", ["id"], where="NOT webhooks_enabled"
    )
