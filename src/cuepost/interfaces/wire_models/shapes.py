"""The ground of all wire models: names in camelCase, strict bodies, and the kinds of text.

An optional field of a request is UNSET when it was left out: so a change can tell "absent" from
"null", and a body that is written again has just the fields that came in.
"""

from datetime import datetime
from typing import Annotated, ClassVar, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType

from cuepost.domain.artifact import FILE_NAME, KEY_FAULT, MEDIA_KEY, NAME_FAULT
from cuepost.domain.errors import FieldError, Invalid
from cuepost.domain.instants import EPOCH, at_millisecond, to_text

T = TypeVar("T")

# `\Z`, because `$` would let a line end slip through; the schema says `$`, as ECMA means it.
LINE = r"^[^\x00-\x1f\x7f-\x9f]*\Z"
TEXT = r"^[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]*\Z"
MEDIA_TYPE = r"^[\x20-\x7e]*\Z"

PATTERN_FAULTS = {
    LINE: ("invalid_characters", "Control characters, line ends included, cannot stand here."),
    TEXT: ("invalid_characters", "Control characters other than tab and line end cannot be here."),
    FILE_NAME: NAME_FAULT,
    MEDIA_KEY: KEY_FAULT,
    MEDIA_TYPE: ("invalid_characters", "Give a media type in plain ASCII."),
}

_YEAR = "^(19[7-9][0-9]|[2-9][0-9]{3})-"

Time = Annotated[
    datetime,
    Meta(
        tz=True,
        description="RFC 3339 with an offset; years 1970 to 9999.",
        examples=["2026-01-02T03:04:05.678Z"],
        extra_json_schema={"pattern": _YEAR},
    ),
]
Moment = Annotated[
    str,
    Meta(
        description="UTC, to the millisecond.",
        examples=["2026-01-02T03:04:05.678Z"],
        extra_json_schema={"format": "date-time"},
    ),
]


class Request(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A body or a query: every field that is not known is refused by name.

    `fallback` is decoded instead where a readable body is not valid as a whole.
    """

    fallback: ClassVar[type["Request"] | None] = None


class Answer(Struct, frozen=True, rename="camel"):
    """What a call answers with."""


def given(value: T | UnsetType | None) -> T | None:
    """The value, or None where it was left out."""
    return None if value is UNSET else value


def instant_of(value: datetime, field: str) -> datetime:
    """The instant as it is stored; refused where the store could not hold it."""
    try:
        instant = at_millisecond(value)
    except OverflowError:
        instant = None
    if instant is None or instant < EPOCH:
        raise Invalid(
            FieldError(field, "time_out_of_range", "Give a time between the years 1970 and 9999.")
        )
    return instant


def optional_instant(value: datetime | UnsetType | None, field: str) -> datetime | None:
    found = given(value)
    return None if found is None else instant_of(found, field)


def moment(value: datetime | None) -> str | None:
    return None if value is None else to_text(value)
