"""The index that projects are found by, and one of those that have no search name yet."""

from cuepost.adapters.storage.migrations.concurrent_index import create_index_concurrently

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None
oldest_code = "0024"


def upgrade() -> None:
    create_index_concurrently(
        "projects_by_search_name",
        "projects",
        ["account_id", "search_name", "id"],
        where="deleted_at IS NULL",
    )
    create_index_concurrently(
        "projects_without_search_name", "projects", ["id"], where="search_name IS NULL"
    )
