"""Keyset pagination by id."""

from datetime import datetime
from typing import Any
from uuid import UUID

from cuepost.adapters.storage.sql import Sql, statement
from cuepost.domain.instants import lowest_at
from cuepost.ports.records import Page

HIGHEST = UUID(int=(1 << 128) - 1)
# No text that begins with a prefix comes behind the prefix with this character.
LAST = "\U0010ffff"


def bounds(page: Page) -> dict[str, Any]:
    return {"before": page.before or HIGHEST, "most": page.limit}


def pages(text: str, identifier: str = "id") -> Sql:
    """The query with pagination; `bounds` has the parameters of a page."""
    return Sql(f"{text} AND {identifier} < :before ORDER BY {identifier} DESC LIMIT :most")


class Chosen:
    """A query that is built for a call: its conditions and their values."""

    def __init__(self, *conditions: str, **values: Any) -> None:
        self.conditions = list(conditions)
        self.values = values

    def where(self, condition: str, **values: Any) -> None:
        self.conditions.append(condition)
        self.values |= values

    def between(self, identifier: str, lowest: UUID | None, end: UUID | None) -> None:
        """At most one bound on each side: of two, SQLite would use only one for the index seek."""
        if lowest is not None:
            self.where(f"{identifier} >= :lowest", lowest=lowest)
        if end is not None:
            self.where(f"{identifier} < :before", before=end)

    def made_in(
        self, identifier: str, page: Page, since: datetime | None, until: datetime | None
    ) -> None:
        """Limits to the page and to ids created from `since` to before `until`: ids have a time."""
        ends = [page.before, lowest_at(until) if until else None]
        end = min((each for each in ends if each is not None), default=None)
        self.between(identifier, lowest_at(since) if since else None, end)

    def of(self, text: str, then: str = "") -> Sql:
        return statement(f"{text} WHERE {' AND '.join(self.conditions)} {then}")

    def newest_first(self, text: str, limit: int, identifier: str = "id") -> Sql:
        self.values["most"] = limit
        return self.of(text, f"ORDER BY {identifier} DESC LIMIT :most")
