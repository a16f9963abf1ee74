"""Conditional and partial requests, judged without a file or a network."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuepost.interfaces.media.conditions import (
    NOT_MODIFIED,
    PRECONDITION_FAILED,
    UNSATISFIABLE,
    Span,
    Validators,
    part,
    refusal,
)

TAG, OTHER = '"1f-a-2"', '"1f-a-3"'
WRITTEN = datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)
KNOWN = Validators(TAG, WRITTEN, WRITTEN + timedelta(hours=1))
ON_TIME, BEFORE, AFTER = (f"Fri, 02 Jan 2026 03:04:0{second} GMT" for second in (5, 4, 6))


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, None),
        ({"if-none-match": TAG}, NOT_MODIFIED),
        ({"if-none-match": f"W/{TAG}"}, NOT_MODIFIED),
        ({"if-none-match": f"{OTHER}, {TAG}"}, NOT_MODIFIED),
        ({"if-none-match": "*"}, NOT_MODIFIED),
        ({"if-none-match": OTHER}, None),
        ({"if-none-match": TAG.strip('"')}, None),
        ({"if-modified-since": ON_TIME}, NOT_MODIFIED),
        ({"if-modified-since": AFTER}, NOT_MODIFIED),
        ({"if-modified-since": BEFORE}, None),
        ({"if-modified-since": "yesterday"}, None),
        # A tag outweighs a date.
        ({"if-none-match": OTHER, "if-modified-since": AFTER}, None),
        ({"if-match": TAG}, None),
        ({"if-match": "*"}, None),
        ({"if-match": OTHER}, PRECONDITION_FAILED),
        ({"if-match": f"W/{TAG}"}, PRECONDITION_FAILED),
        ({"if-unmodified-since": ON_TIME}, None),
        ({"if-unmodified-since": BEFORE}, PRECONDITION_FAILED),
        ({"if-unmodified-since": "never"}, None),
        ({"if-match": TAG, "if-unmodified-since": BEFORE}, None),
        ({"if-match": OTHER, "if-none-match": TAG}, PRECONDITION_FAILED),
        ({"if-match": TAG, "if-none-match": TAG}, NOT_MODIFIED),
    ],
)
def test_a_condition_is_judged_as_the_standard_says(
    headers: dict[str, str], status: int | None
) -> None:
    assert refusal(headers, KNOWN) == status


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("bytes=0-0", Span(0, 1)),
        ("bytes=0-", Span(0, 10)),
        ("bytes=3-5", Span(3, 6)),
        ("bytes=3-99", Span(3, 10)),
        ("bytes=9-", Span(9, 10)),
        ("bytes=-3", Span(7, 10)),
        ("bytes=-99", Span(0, 10)),
        ("BYTES = 3-5", Span(3, 6)),
        ("bytes=10-", UNSATISFIABLE),
        ("bytes=10-20", UNSATISFIABLE),
        ("bytes=-0", UNSATISFIABLE),
        (f"bytes={'9' * 40}-", UNSATISFIABLE),
        (None, None),
        ("", None),
        ("bytes=", None),
        ("bytes=-", None),
        ("bytes=5-3", None),
        ("bytes=a-b", None),
        ("bytes=٣-٥", None),
        ("bytes=0-1,3-4", None),
        ("items=0-1", None),
        ("bytes=0x1-2", None),
        (f"bytes={'9' * 9_000}-", None),
    ],
)
def test_one_part_is_understood_and_everything_else_gets_the_whole_file(
    text: str | None, found: Span | int | None
) -> None:
    headers = {} if text is None else {"range": text}
    assert part(headers, 10, KNOWN) == found


def test_no_part_of_an_empty_file_can_be_had() -> None:
    assert part({"range": "bytes=0-"}, 0, KNOWN) == UNSATISFIABLE
    assert part({"range": "bytes=-5"}, 0, KNOWN) == UNSATISFIABLE


@pytest.mark.parametrize(
    ("condition", "goes_on"),
    [
        (TAG, True),
        (OTHER, False),
        (f"W/{TAG}", False),
        (ON_TIME, True),
        (BEFORE, False),
        (AFTER, False),
        ("*", False),
        ("", False),
    ],
)
def test_a_download_goes_on_only_with_the_same_file(condition: str, goes_on: bool) -> None:
    headers = {"range": "bytes=3-", "if-range": condition}
    assert part(headers, 10, KNOWN) == (Span(3, 10) if goes_on else None)


def test_the_date_of_a_file_that_was_just_written_is_not_trusted() -> None:
    fresh = Validators(TAG, WRITTEN, WRITTEN + timedelta(milliseconds=999))
    assert part({"range": "bytes=3-", "if-range": ON_TIME}, 10, fresh) is None
    assert part({"range": "bytes=3-", "if-range": TAG}, 10, fresh) == Span(3, 10)


def test_no_file_is_newer_than_the_answer_about_it() -> None:
    ahead = Validators(TAG, WRITTEN + timedelta(days=1), WRITTEN)
    assert ahead.http_date() == ON_TIME


NAMES = ["range", "if-range", "if-match", "if-none-match", "if-modified-since"]
VALUES = st.one_of(st.text(), st.from_regex(r"bytes=\d*-\d*"), st.datetimes().map(str))


@given(st.dictionaries(st.sampled_from([*NAMES, "if-unmodified-since"]), VALUES), st.integers(0))
def test_whatever_is_asked_a_part_lies_within_the_file(headers: dict[str, str], size: int) -> None:
    assert refusal(headers, KNOWN) in (None, NOT_MODIFIED, PRECONDITION_FAILED)
    found = part(headers, size, KNOWN)
    if isinstance(found, Span):
        assert 0 <= found.start < found.stop <= size
    else:
        assert found in (None, UNSATISFIABLE)
