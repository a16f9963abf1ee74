"""Base classes and field types of the wire models: camelCase names, strict requests.

An omitted optional field of a request is UNSET, which distinguishes it from null and keeps the
canonical encoding of a body free of fields that were not sent.
"""

from datetime import datetime
from typing import Annotated, ClassVar, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType

from cuepost.domain.account_reference import (
    EXTERNAL_ID,
    EXTERNAL_ID_FAULT,
    MEMBER_REFERENCE,
    MEMBER_REFERENCE_FAULT,
)
from cuepost.domain.artifact import FILE_NAME, KEY_FAULT, MEDIA_KEY, NAME_FAULT
from cuepost.domain.colour import COLOUR, COLOUR_FAULT
from cuepost.domain.errors import FieldError, Invalid
from cuepost.domain.instants import EPOCH, at_millisecond, to_text

T = TypeVar("T")

# `\Z`, because Python's `$` also matches before a final newline; schemas use `$` of ECMA-262.
LINE = r"^[^\x00-\x1f\x7f-\x9f]*\Z"
TEXT = r"^[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]*\Z"
MEDIA_TYPE = r"^[\x20-\x7e]*\Z"

PATTERN_FAULTS = {
    LINE: ("invalid_characters", "Control characters and line breaks are not allowed."),
    TEXT: (
        "invalid_characters",
        "Control characters other than tabs and line breaks are not allowed.",
    ),
    EXTERNAL_ID: EXTERNAL_ID_FAULT,
    MEMBER_REFERENCE: MEMBER_REFERENCE_FAULT,
    COLOUR: COLOUR_FAULT,
    FILE_NAME: NAME_FAULT,
    MEDIA_KEY: KEY_FAULT,
    MEDIA_TYPE: ("invalid_characters", "Use a media type in plain ASCII."),
}

Name = Annotated[str, Meta(min_length=1, max_length=200, pattern=LINE)]

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
    """A body or a query; unknown fields are refused by name.

    `fallback` is decoded instead if a well-formed body is not valid as a whole.
    """

    fallback: ClassVar[type["Request"] | None] = None


class ResponseModel(Struct, frozen=True, rename="camel"):
    """A response body, or a part of one."""


def given(value: T | UnsetType | None) -> T | None:
    """The value, or None if it was omitted."""
    return None if value is UNSET else value


def instant_of(value: datetime, field: str) -> datetime:
    """The instant in the precision of the store; refused if it is out of range."""
    try:
        instant = at_millisecond(value)
    except OverflowError:
        instant = None
    if instant is None or instant < EPOCH:
        raise Invalid(
            FieldError(field, "time_out_of_range", "Use a time between the years 1970 and 9999.")
        )
    return instant


def optional_instant(value: datetime | UnsetType | None, field: str) -> datetime | None:
    found = given(value)
    return None if found is None else instant_of(found, field)


def moment(value: datetime | None) -> str | None:
    return None if value is None else to_text(value)
