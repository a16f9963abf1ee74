"""Pages of lists: a cursor is the id of the last thing seen, in letters."""

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import Annotated, Protocol, TypeVar
from uuid import UUID

from msgspec import UNSET, Meta, UnsetType

from cuepost.domain.errors import FieldError, Invalid
from cuepost.interfaces.wire_models.shapes import Request
from cuepost.ports.records import Page

DEFAULT_LIMIT = 20
LARGEST_LIMIT = 100

# Every text of this form is sixteen bytes; the last letter carries two of their bits.
CURSOR = "^[A-Za-z0-9_-]{21}[AQgw]$"

Cursor = Annotated[
    str,
    Meta(
        description="`nextCursor` of the page before.",
        extra_json_schema={"pattern": CURSOR},
    ),
]


class PageQuery(Request, frozen=True):
    limit: Annotated[int, Meta(ge=1, le=LARGEST_LIMIT)] = DEFAULT_LIMIT
    cursor: Cursor | UnsetType = UNSET

    def page(self) -> Page:
        """One more than asked for, which tells whether there is a next page."""
        before = None if isinstance(self.cursor, UnsetType) else id_in(self.cursor)
        return Page(self.limit + 1, before)


class Identified(Protocol):
    @property
    def id(self) -> UUID: ...


Thing = TypeVar("Thing", bound=Identified)


def cut(found: Sequence[Thing], limit: int) -> tuple[list[Thing], str | None]:
    """The page itself, and the cursor behind it if there is more."""
    page = list(found[:limit])
    return page, cursor_of(page[-1].id) if len(found) > limit else None


def cursor_of(identifier: UUID) -> str:
    return urlsafe_b64encode(identifier.bytes).decode().rstrip("=")


def id_in(cursor: str) -> UUID:
    try:
        found = UUID(bytes=urlsafe_b64decode(cursor.encode("ascii") + b"=="))
    except (UnicodeEncodeError, binascii.Error, ValueError):
        found = None
    if found is None or cursor_of(found) != cursor:
        raise Invalid(
            FieldError("cursor", "invalid_cursor", "Give the nextCursor of an earlier page.")
        )
    return found
