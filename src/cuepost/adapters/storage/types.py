"""Column types of ids and instants: native on PostgreSQL, compact on SQLite."""

from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from cuepost.adapters.quick_ids import ID_BYTES, id_from
from cuepost.adapters.storage.codes import Codes
from cuepost.domain.instants import from_millis, to_millis


class Id(sa.types.TypeDecorator[UUID]):
    """`uuid` on PostgreSQL; sixteen bytes on SQLite, which sort in the same order."""

    impl = sa.Uuid
    cache_ok = True

    def load_dialect_impl(self, dialect: sa.Dialect) -> sa.types.TypeEngine[Any]:
        if dialect.name == "postgresql":
            return dialect.type_descriptor(postgresql.UUID(as_uuid=True))
        return dialect.type_descriptor(sa.LargeBinary(ID_BYTES))

    def process_bind_param(self, value: UUID | None, dialect: sa.Dialect) -> Any:
        if value is None or dialect.name == "postgresql":
            return value
        return value.bytes

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> UUID | None:
        if value is None or dialect.name == "postgresql":
            return value  # type: ignore[no-any-return]  # asyncpg returns UUIDs
        return id_from(value)


class Instant(sa.types.TypeDecorator[datetime]):
    """`timestamptz` on PostgreSQL; milliseconds since the epoch on SQLite."""

    impl = sa.DateTime
    cache_ok = True

    def load_dialect_impl(self, dialect: sa.Dialect) -> sa.types.TypeEngine[Any]:
        if dialect.name == "postgresql":
            return dialect.type_descriptor(sa.DateTime(timezone=True))
        return dialect.type_descriptor(sa.BigInteger())

    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> Any:
        if value is None or dialect.name == "postgresql":
            return value
        return to_millis(value)

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> datetime | None:
        if value is None or dialect.name == "postgresql":
            return value  # type: ignore[no-any-return]  # asyncpg returns aware datetimes
        return from_millis(value)


class Code(sa.types.TypeDecorator[str]):
    """A value of a closed list, as a small number."""

    impl = sa.SmallInteger
    cache_ok = True

    def __init__(self, of: Codes) -> None:
        super().__init__()
        self.of = of

    @property
    def codes(self) -> dict[str | None, int | None]:
        return self.of.codes

    @property
    def meanings(self) -> dict[int | None, str | None]:
        return self.of.meanings

    def process_bind_param(self, value: str | None, dialect: sa.Dialect) -> int | None:
        return self.of.codes[value]

    def process_result_value(self, value: int | None, dialect: sa.Dialect) -> str | None:
        return self.of.meanings[value]

    def literal(self, value: str) -> sa.ColumnElement[str]:
        """A literal in the statement, so that the planner sees which partial index applies."""
        return sa.literal_column(str(self.of.codes[value]), self)
