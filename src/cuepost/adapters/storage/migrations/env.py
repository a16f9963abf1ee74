"""Runs the migrations on the connection that `upgrading.py` passes in."""

from collections.abc import Collection, Mapping
from typing import Any

import sqlalchemy as sa
from alembic import context
from alembic.runtime.migration import MigrationContext, MigrationInfo

from cuepost.adapters.storage.schema import VERSION
from cuepost.adapters.storage.tables import metadata

connection: sa.Connection = context.config.attributes["connection"]


def state_oldest_code(
    ctx: MigrationContext,
    step: MigrationInfo,
    heads: Collection[Any],
    run_args: Mapping[str, Any],
) -> None:
    """For versions that do not know the migration. The stored value only increases."""
    stated = getattr(getattr(step.up_revision, "module", None), "oldest_code", None)
    if stated is not None:
        connection.execute(
            sa.text(
                f"UPDATE {VERSION} SET oldest_code = :stated "
                "WHERE oldest_code IS NULL OR oldest_code < :stated"
            ),
            {"stated": stated},
        )


context.configure(
    connection=connection,
    target_metadata=metadata,
    compare_type=True,
    # Services may be running: the locks of a migration must not last until the end of the next.
    transaction_per_migration=connection.dialect.name == "postgresql",
    on_version_apply=state_oldest_code,
)
with context.begin_transaction():
    context.run_migrations()
