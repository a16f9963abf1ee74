"""Creates an index on a table while services write to it."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

_IS_PARTITIONED = "SELECT relkind = 'p' FROM pg_class WHERE oid = to_regclass(:table)"
_WITHOUT_INDEX = """
    SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = to_regclass(:table) AND NOT EXISTS (
        SELECT FROM pg_index x JOIN pg_inherits p ON p.inhrelid = x.indexrelid
        WHERE x.indrelid = c.oid AND p.inhparent = to_regclass(:index)
    )
"""
_IS_INVALID = "SELECT NOT indisvalid FROM pg_index WHERE indexrelid = to_regclass(:index)"


def create_index_concurrently(
    name: str,
    table: str,
    columns: Sequence[str],
    *,
    where: str | None = None,
    is_unique: bool = False,
) -> None:
    """A migration that calls this must do nothing else: if interrupted, all of it is run again."""
    if op.get_bind().dialect.name == "sqlite":
        condition = None if where is None else sa.text(where)
        op.create_index(op.f(name), table, columns, unique=is_unique, sqlite_where=condition)
        return
    shape = f"({', '.join(columns)})" + ("" if where is None else f" WHERE {where}")
    is_partitioned = _ask(_IS_PARTITIONED, table=table)[0]
    if is_partitioned:
        # Partitions that are created from here on get the index automatically.
        op.execute(f"CREATE INDEX IF NOT EXISTS {name} ON ONLY {table} {shape}")
    made = []
    with op.get_context().autocommit_block():
        if not is_partitioned:
            _build(name, table, shape, is_unique=is_unique)
            return
        for partition in _ask(_WITHOUT_INDEX, table=table, index=name):
            made.append(f"{name}_{partition.rpartition('_')[2]}")
            _build(made[-1], partition, shape)
    for each in made:
        op.execute(f"ALTER INDEX {name} ATTACH PARTITION {each}")


def _build(name: str, table: str, shape: str, *, is_unique: bool = False) -> None:
    # An interrupted build leaves an invalid index.
    if any(_ask(_IS_INVALID, index=name)):
        op.execute(f"DROP INDEX CONCURRENTLY {name}")
    kind = "UNIQUE INDEX" if is_unique else "INDEX"
    op.execute(f"CREATE {kind} CONCURRENTLY IF NOT EXISTS {name} ON {table} {shape}")


def _ask(question: str, **values: str) -> Sequence[str]:
    return op.get_bind().scalars(sa.text(question), values).all()
