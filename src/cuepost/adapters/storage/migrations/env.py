"""Runs the migrations on the connection that `schema.py` hands over."""

from alembic import context

from cuepost.adapters.storage.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    compare_type=True,
    transaction_per_migration=False,
)
with context.begin_transaction():
    context.run_migrations()
