"""JSON as indented, highlighted HTML. The tokens stay as they are; only white space changes."""

import json
import re
from collections.abc import Iterator

from markupsafe import Markup, escape

# A deeper one would be mostly indentation.
DEEPEST = 40
_TOKEN = re.compile(
    r'(?P<text>"(?:[^"\\]|\\.)*")(?P<key>\s*:)?|(?P<number>-?\d[\d.eE+-]*)|(?P<word>true|false|null)'
    r"|(?P<open>[{\[])|(?P<close>[}\]])|(?P<comma>,)"
)


def highlighted(content: bytes | str) -> Markup | None:
    """None if it is not an object or a list in JSON."""
    try:
        text = content.decode() if isinstance(content, bytes) else content
        is_nested = isinstance(json.loads(text, parse_constant=_refuse), dict | list)
    except (ValueError, RecursionError):
        return None
    if not is_nested:
        return None
    pieces = list(_pieces(text))
    return Markup("").join(pieces) if pieces else None


def _refuse(constant: str) -> None:
    """Python reads NaN and Infinity, which are not JSON."""
    raise ValueError(constant)


def _pieces(text: str) -> Iterator[Markup]:
    """Nothing, if it is nested too deeply."""
    made: list[Markup] = []
    depth, is_empty = 0, False
    for token in _TOKEN.finditer(text):
        kind, shown = token.lastgroup, token[0]
        if kind == "close":
            depth -= 1
            made.append(Markup("") if is_empty else _line(depth))
        elif is_empty:
            made.append(_line(depth))
        is_empty = kind == "open"
        depth += is_empty
        if depth > DEEPEST:
            return
        made.append(_marked(kind, token["text"] if kind == "key" else shown))
        if kind == "comma":
            made.append(_line(depth))
    yield from made


def _line(depth: int) -> Markup:
    return Markup("\n" + "  " * depth)


def _marked(kind: str | None, shown: str) -> Markup:
    if kind in ("open", "close", "comma"):
        return Markup(shown)
    marked = Markup('<span class="json-{}">{}</span>').format(kind, escape(_inert(shown)))
    return marked + ": " if kind == "key" else marked


def _inert(shown: str) -> str:
    return "".join(each if each.isprintable() else "\ufffd" for each in shown)
