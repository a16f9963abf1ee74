"""Keyset pages: the id alone says where a page begins."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa

from cuepost.domain.ids import lowest_at
from cuepost.ports.records import Page


def newest_first(
    statement: sa.Select[Any], identifier: sa.ColumnElement[Any], page: Page
) -> sa.Select[Any]:
    if page.before is not None:
        statement = statement.where(identifier < page.before)
    return statement.order_by(identifier.desc()).limit(page.limit)


def within(
    statement: sa.Select[Any],
    identifier: sa.ColumnElement[Any],
    since: datetime | None,
    until: datetime | None,
) -> sa.Select[Any]:
    """Rows made at `since` or later and before `until`, by the time that their ids carry."""
    if since is not None:
        statement = statement.where(identifier >= lowest_at(since))
    if until is not None:
        statement = statement.where(identifier < lowest_at(until))
    return statement
