"""Each report of msgspec becomes a field, a code and a sentence."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

import msgspec
import pytest
from msgspec import UNSET, Meta, UnsetType

from cuepost.domain.delivery import DeliveryStatus
from cuepost.domain.errors import FieldError
from cuepost.domain.project import ProjectKind
from cuepost.interfaces.rest.milestones import Size
from cuepost.interfaces.wire_models.faults import field_error
from cuepost.interfaces.wire_models.shapes import LINE, Request, Time


class Inner(Request, frozen=True):
    kind: ProjectKind | UnsetType | None = UNSET
    words: list[Annotated[str, Meta(pattern=LINE)]] | UnsetType = UNSET
    other: Annotated[str, Meta(pattern="^x$")] | UnsetType = UNSET


class Sample(Request, frozen=True):
    name: Annotated[str, Meta(min_length=2, max_length=3)] | UnsetType = UNSET
    count: Annotated[int, Meta(ge=1, le=9)] | UnsetType = UNSET
    size: Size | UnsetType = UNSET
    flag: bool | UnsetType = UNSET
    at: Time | UnsetType | None = UNSET
    owner_id: UUID | UnsetType = UNSET
    states: Annotated[list[DeliveryStatus], Meta(max_length=2)] | UnsetType | None = UNSET
    inner: list[Inner] | UnsetType = UNSET


TIME = "Use a time with an offset, such as 2026-01-02T03:04:05Z (in a query: + as %2B)."


@pytest.mark.parametrize(
    ("body", "field", "code", "message"),
    [
        ("[]", "body", "wrong_type", "This must be an object, not a list."),
        ('{"name": 5}', "name", "wrong_type", "This must be text, not a whole number."),
        ('{"name": "a"}', "name", "too_short", "At least 2 characters are needed."),
        ('{"name": "aaaa"}', "name", "too_long", "At most 3 characters are allowed."),
        ('{"count": 0}', "count", "too_small", "This must be at least 1."),
        ('{"count": 10}', "count", "too_large", "This can be at most 9."),
        ('{"count": 1e999}', "count", "too_large", "This number is too large."),
        ('{"count": null}', "count", "wrong_type", "This must be a whole number, not null."),
        ('{"size": -1.0}', "size", "too_small", "This must be at least 0."),
        ('{"size": 1e17}', "size", "too_large", "This can be at most 9007199254740992."),
        ('{"size": 0.5}', "size", "wrong_type", "This must be a whole number."),
        ('{"size": "1"}', "size", "wrong_type", "This must be a whole number, not text."),
        ('{"flag": "yes"}', "flag", "wrong_type", "This must be true or false, not text."),
        ('{"at": 5}', "at", "wrong_type", "This must be a time or null, not a whole number."),
        ('{"at": "now"}', "at", "invalid_time", TIME),
        ('{"at": "2026-01-01T00:00:00"}', "at", "invalid_time", TIME),
        ('{"ownerId": "x"}', "ownerId", "invalid_id", "This must be a UUID."),
        ('{"states": ["failed", "x"]}', "states[1]", "invalid_value",
         "Choose from pending, delivering, retrying, delivered, failed, cancelled."),
        ('{"states": ["failed", "failed", "failed"]}', "states", "too_long",
         "At most 2 entries are allowed."),
        ('{"inner": [{}, {"kind": "x"}]}', "inner[1].kind", "invalid_value",
         "Choose from video, transcript."),
        (r'{"inner": [{"words": ["a", "\u0000"]}]}', "inner[0].words[1]", "invalid_characters",
         "Control characters and line breaks are not allowed."),
        ('{"inner": [{"other": "y"}]}', "inner[0].other", "invalid_value",
         "This value has the wrong format."),
        ('{"inner": [{"colour": 1}]}', "inner[0].colour", "unknown_field",
         "This field is not known."),
        ('{"a`b": 1}', "a`b", "unknown_field", "This field is not known."),
    ],
)  # fmt: skip
def test_a_fault_is_named_with_a_stable_code_and_a_sentence(
    body: str, field: str, code: str, message: str
) -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.json.decode(body, type=Sample)
    assert field_error(str(caught.value), Sample) == FieldError(field, code, message)


def test_a_report_of_an_unknown_kind_still_has_a_field() -> None:
    found = field_error("Something new - at `$.name`", Sample)
    assert found == FieldError("name", "invalid_value", "This value is not valid here.")


def test_a_time_may_have_any_offset() -> None:
    decoded = msgspec.json.decode(b'{"at": "2026-01-01T00:00:00+05:30"}', type=Sample)
    assert isinstance(decoded.at, datetime)
