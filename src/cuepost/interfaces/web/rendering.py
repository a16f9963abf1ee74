"""Templates, and their filters for times, sizes and untrusted text."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from markupsafe import Markup, escape

from cuepost.domain.instants import instant_of
from cuepost.interfaces.web.accents import address_of_accent
from cuepost.interfaces.web.json_text import highlighted
from cuepost.interfaces.web.static_files import address_of
from cuepost.interfaces.web.times import ago, in_field, moment, plain_time, span

if TYPE_CHECKING:
    from jinja2 import Environment


@cache
def environment() -> "Environment":
    """Created for the first page: a service without page views does not load the library."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415  # see above

    made = Environment(
        loader=PackageLoader(__package__.rpartition(".")[0] + ".web", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        # Templates do not change; with 20 rows a page would check 80 files.
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["static"] = address_of
    made.globals["accent"] = address_of_accent
    made.filters.update(
        moment=moment,
        ago=ago,
        in_field=in_field,
        plain_time=plain_time,
        span=span,
        millis=millis,
        size=size,
        inert=inert,
        words=words,
        share=share,
        ticked=ticked,
        address=address,
        host=host,
        id_instant=instant_of,
        seconds_before=seconds_before,
        highlighted=highlighted,
    )
    return made


def render(template: str, context: Mapping[str, Any]) -> str:
    return environment().get_template(template).render(context)


def millis(duration: float | None) -> str:
    if duration is None:
        return "–"
    if duration >= 10_000:
        return f"{duration / 1000:.1f} s"
    return f"{duration:.0f} ms" if duration >= 10 else f"{duration:.1f} ms"


def size(count: int) -> str:
    amount, unit = float(count), "bytes"
    for larger in ("KB", "MB", "GB", "TB"):
        if amount < 1000:
            break
        amount, unit = amount / 1000, larger
    return f"{count} bytes" if unit == "bytes" else f"{amount:.1f} {unit}"


def inert(content: bytes | str) -> str:
    """Untrusted text without control characters."""
    text = content.decode("utf-8", "replace") if isinstance(content, bytes) else content
    return "".join(each if each.isprintable() or each in "\n\t" else "\ufffd" for each in text)


def words(code: str) -> str:
    """`connect_error` as `connect error`."""
    return code.replace("_", " ")


def ticked(text: str) -> Markup:
    """Text between backticks is shown as code."""
    parts = text.split("`")
    made = [
        Markup("<code>{}</code>").format(part) if index % 2 else escape(part)
        for index, part in enumerate(parts)
    ]
    return Markup("").join(made)


def address(url: str) -> Markup:
    """A URL whose host stands out."""
    parts = urlsplit(url)
    before = f"{parts.scheme}://"
    after = url.removeprefix(before).removeprefix(parts.netloc)
    return Markup(
        '<span class="dim">{}</span><strong>{}</strong><span class="dim">{}</span>'
    ).format(before, parts.netloc, after)


def host(url: str) -> str:
    """Of a receiver; the rest of its URL may hold a secret."""
    return urlsplit(url).netloc


def seconds_before(instant: datetime, seconds: float) -> datetime:
    return instant - timedelta(seconds=seconds)


def share(part: float | None) -> str:
    if part is None:
        return "–"
    percent = part * 100
    return f"{percent:.0f} %" if percent == round(percent) else f"{percent:.1f} %"
