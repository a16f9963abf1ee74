"""Times as HTML: absolute or relative, in UTC until a script shows the viewer's zone."""

from datetime import UTC, datetime, timedelta

from markupsafe import Markup, escape

from cuepost.domain.instants import to_text

_UNITS = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))
_RELATIVE_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def moment(instant: datetime | None, never: str = "–") -> Markup:
    """The date and the time."""
    if instant is None:
        return escape(never)
    return _element(instant, _absolute(instant), "")


def ago(instant: datetime | None, now: datetime, never: str = "–") -> Markup:
    """`3 min ago` or `in 2 h`, with the absolute time on hover."""
    if instant is None:
        return escape(never)
    return _element(instant, relative(instant, now), " data-relative")


def relative(instant: datetime, now: datetime) -> str:
    """The largest unit alone, rounded down."""
    seconds = int(abs((now - instant).total_seconds()))
    for unit, length in _RELATIVE_UNITS:
        if seconds >= length:
            amount = f"{seconds // length} {unit}"
            return f"in {amount}" if instant > now else f"{amount} ago"
    return "now"


def span(duration: timedelta) -> str:
    """`4 m 12 s`: at most two units."""
    seconds = max(round(duration.total_seconds()), 0)
    parts: list[str] = []
    for unit, length in _UNITS:
        if seconds >= length or parts:
            parts.append(f"{seconds // length} {unit}")
            seconds %= length
    shown = [part for part in parts[:2] if not part.startswith("0 ")]
    return " ".join(shown) or "0 s"


def in_field(instant: datetime | None, *, seconds: bool = False) -> str:
    """The value of a browser's date and time field, in UTC."""
    if instant is None:
        return ""
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S" if seconds else "%Y-%m-%dT%H:%M")


def _absolute(instant: datetime) -> str:
    return instant.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def _element(instant: datetime, shown: str, kind: str) -> Markup:
    # Only digits, letters and punctuation: nothing has to be escaped.
    title = f"{_absolute(instant)} UTC"
    return Markup(f'<time datetime="{to_text(instant)}" title="{title}"{kind}>{shown}</time>')


def plain_time(instant: datetime) -> str:
    """For where no element fits; to the minute."""
    return instant.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
