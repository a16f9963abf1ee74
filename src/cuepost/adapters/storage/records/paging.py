"""Keyset pages: the id alone says where a page begins."""

from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from cuepost.adapters.storage.statements import Prepared
from cuepost.adapters.storage.types import Id
from cuepost.domain.ids import lowest_at
from cuepost.ports.records import Page

HIGHEST = UUID(int=(1 << 128) - 1)


def prepared(statement: sa.Select[Any], identifier: sa.ColumnElement[Any]) -> Prepared:
    """Pages of all that the statement finds; `bounds` has the parameters that tell which one."""
    before = statement.where(identifier < sa.bindparam("before", type_=Id))
    return Prepared(
        before.order_by(identifier.desc())
        .limit(sa.bindparam("most", type_=sa.Integer))
        # Spelled out, because for SQLite it would become one more parameter.
        .offset(sa.literal_column("0"))
    )


def bounds(page: Page) -> dict[str, Any]:
    return {"before": page.before or HIGHEST, "most": page.limit}


def newest_first(
    statement: sa.Select[Any],
    identifier: sa.ColumnElement[Any],
    page: Page,
    since: datetime | None = None,
    until: datetime | None = None,
) -> sa.Select[Any]:
    """Rows made at `since` or later and before `until`, by the time that their ids carry."""
    ends = [end for end in (page.before, lowest_at(until) if until else None) if end is not None]
    begin = lowest_at(since) if since else None
    statement = between(statement, identifier, begin, min(ends, default=None))
    return statement.order_by(identifier.desc()).limit(page.limit)


def between(
    statement: sa.Select[Any],
    identifier: sa.ColumnElement[Any],
    lowest: UUID | None,
    end: UUID | None,
) -> sa.Select[Any]:
    """One bound a side: of two, SQLite would seek to the one and read up to the other."""
    if lowest is not None:
        statement = statement.where(identifier >= lowest)
    if end is not None:
        statement = statement.where(identifier < end)
    return statement
