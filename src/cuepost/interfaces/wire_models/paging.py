"""Keyset pagination; a cursor is the base64url-encoded id of the last entry."""

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

# Sixteen bytes in base64url; only four values of the last character are canonical.
CURSOR = "^[A-Za-z0-9_-]{21}[AQgw]$"

Cursor = Annotated[
    str,
    Meta(
        description="`nextCursor` of the previous page.",
        extra_json_schema={"pattern": CURSOR},
    ),
]


class PageQuery(Request, frozen=True):
    limit: Annotated[int, Meta(ge=1, le=LARGEST_LIMIT)] = DEFAULT_LIMIT
    cursor: Cursor | UnsetType = UNSET

    def page(self) -> Page:
        """One entry more than `limit`, to detect whether there is a next page."""
        before = None if isinstance(self.cursor, UnsetType) else id_in(self.cursor)
        return Page(self.limit + 1, before)


class Identified(Protocol):
    @property
    def id(self) -> UUID: ...


Entry = TypeVar("Entry", bound=Identified)


def cut(found: Sequence[Entry], limit: int) -> tuple[list[Entry], str | None]:
    """The entries of the page, and the cursor of the next page if there is one."""
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
            FieldError("cursor", "invalid_cursor", "Use the nextCursor of an earlier page.")
        )
    return found
