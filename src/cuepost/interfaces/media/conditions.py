"""Conditional and partial requests (RFC 9110, sections 13 and 14) as pure functions."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime, parsedate_to_datetime

from cuepost.interfaces.wire_models.entity_tags import tags_in

NOT_MODIFIED, PRECONDITION_FAILED, UNSATISFIABLE = 304, 412, 416

_SINGLE_RANGE = re.compile(r"bytes[ \t]*=[ \t]*([0-9]{0,40})-([0-9]{0,40})", re.IGNORECASE)
_SECOND = timedelta(seconds=1)

Headers = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Validators:
    """The validators of a file; `tag` is a strong entity tag with its quotes."""

    tag: str
    modified_at: datetime
    now: datetime

    @property
    def last_modified(self) -> datetime:
        """In whole seconds, and never later than now."""
        return min(self.modified_at, self.now).replace(microsecond=0)

    def http_date(self) -> str:
        return format_datetime(self.last_modified, usegmt=True)

    def is_tag(self, text: str) -> bool:
        return text == self.tag

    def is_strong_date(self, instant: datetime) -> bool:
        """A date is strong only after a second, in which the file could have changed again."""
        return instant == self.last_modified and self.now - self.modified_at >= _SECOND


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes from `start` up to, but not including, `stop`."""

    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start


def refusal(headers: Headers, validators: Validators) -> int | None:
    """412 or 304 if a condition requires it, evaluated in the order of the standard."""
    if _is_another(headers, validators):
        return PRECONDITION_FAILED
    return NOT_MODIFIED if _is_known(headers, validators) else None


def _is_another(headers: Headers, validators: Validators) -> bool:
    if (wanted := headers.get("if-match")) is not None:
        return not _lists(wanted, validators.tag, weakly=False)
    since = _date(headers.get("if-unmodified-since"))
    return since is not None and validators.last_modified > since


def _is_known(headers: Headers, validators: Validators) -> bool:
    if (known := headers.get("if-none-match")) is not None:
        return _lists(known, validators.tag, weakly=True)
    since = _date(headers.get("if-modified-since"))
    return since is not None and validators.last_modified <= since


def part(headers: Headers, size: int, validators: Validators) -> Span | int | None:
    """The requested range; None for the whole file, 416 if the range is not satisfiable.

    Unsupported ranges, including multiple ranges, get the whole file.
    """
    wanted = _SINGLE_RANGE.fullmatch(headers.get("range", "").strip())
    if wanted is None or wanted[1] == wanted[2] == "" or not _still_fits(headers, validators):
        return None
    return _span(wanted[1], wanted[2], size)


def _span(first: str, last: str, size: int) -> Span | int | None:
    if not first:
        length = min(int(last), size)
        return Span(size - length, size) if length else UNSATISFIABLE
    start = int(first)
    if last and int(last) < start:
        return None
    if start >= size:
        return UNSATISFIABLE
    return Span(start, min(int(last) + 1, size) if last else size)


def _still_fits(headers: Headers, validators: Validators) -> bool:
    """`If-Range`: serve the range only if the file is unchanged."""
    condition = headers.get("if-range")
    if condition is None or validators.is_tag(condition.strip()):
        return True
    date = _date(condition)
    return date is not None and validators.is_strong_date(date)


def _lists(header: str, tag: str, *, weakly: bool) -> bool:
    listed = tags_in(header, weakly=weakly)
    return listed is None or tag.strip('"') in listed


def _date(text: str | None) -> datetime | None:
    """None if the text is not a date: a condition with an invalid date is ignored."""
    if text is None or len(text) > 64:
        return None
    try:
        found = parsedate_to_datetime(text)
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
