"""Input that no one would write: right things with a few wrong edits, and pure noise."""

import json
import os
from typing import Any

from hypothesis import strategies as st
from msgspec import inspect

# How much each parser is given; a long run asks for more.
EXAMPLES = int(os.environ.get("CUEPOST_TEST_FUZZ_EXAMPLES", "12"))

_FRAGMENTS = st.sampled_from(
    [
        *(
            "\x00",
            "\r\n",
            "\n",
            "\t",
            " ",
            "\ud800",
            "\udfff",
            "\ufeff",
            "\u202e",
            "\u2028",
            "\x7f",
        ),
        *(
            "%",
            "%00",
            "%2e%2e",
            "%zz",
            "..",
            "/",
            "//",
            "\\",
            "?",
            "#",
            "@",
            "&",
            "=",
            ";",
            ",",
            ".",
        ),
        *(
            "[",
            "]",
            "[::1%25eth0]",
            "127.0.0.1",
            "0x7f.1",
            "xn--",
            "xn--a-\x80",
            "。",
            "Ａ",
            "ß",
            "İ",
        ),
        *("{", "}", '"', "'", "\\u0000", "\\ud800", "null", "true", "-", "+", "1e999", "-0", "NaN"),
        *("9" * 25, "9" * 5_000, "A" * 300, "é" * 300, "[" * 5_000, "=" * 4, "-1", "0", "99999"),
    ]
)
_TIMES = (
    *("2026-01-02T03:04:05.678Z", "9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59"),
    *("1969-12-31T23:59:59Z", "2026-02-30T00:00:00Z", "2026-01-02T03:04:60Z", "2026-01-02"),
)
_WORDS = (
    *("https://hooks.example.com/cue", "project.completed", "webhook.test", "Trailer", "video"),
    *("exports/1/trailer.mp4", "../trailer.mp4", "text/vtt", "completed", "failed", ""),
)
IDS = ("0198c0de-9c4e-7d21-8a1b-3f6a5b7c8d90", "ffffffff-ffff-ffff-ffff-ffffffffffff")
DEEP = ("[" * 3_000, '{"url":' * 3_000)
_NUMBERS = st.sampled_from([0, 1, -1, 2**31, 2**53, 2**63, 2**64, 10**30]) | st.integers()

anything: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | _NUMBERS | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)


@st.composite
def _mutated(draw: st.DrawFn, seeds: tuple[str, ...]) -> str:
    text = draw(st.sampled_from(seeds))
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(text)))
        stop = draw(st.integers(start, min(len(text), start + 8)))
        text = text[:start] + draw(_FRAGMENTS | st.text(max_size=3)) + text[stop:]
    return text


def texts(*seeds: str) -> st.SearchStrategy[str]:
    return _mutated(seeds) | st.text(max_size=100)


def blobs(*seeds: str) -> st.SearchStrategy[bytes]:
    """The same as bytes, and bytes that are no text."""
    return st.binary(max_size=100) | texts(*seeds).map(
        lambda text: text.encode("utf-8", "surrogatepass")
    )


def visible(*seeds: str) -> st.SearchStrategy[str]:
    """What a server lets through as the value of a header, byte by byte."""
    return blobs(*seeds).map(
        lambda raw: bytes(each for each in raw if each >= 0x20 or each == 0x09).decode("latin-1")
    )


def near(kind: inspect.Type) -> st.SearchStrategy[Any]:
    """Values of about this type."""
    return _right(kind) if isinstance(kind, inspect.StructType) else _right(kind) | anything


def _right(kind: inspect.Type) -> st.SearchStrategy[Any]:
    match kind:
        case inspect.Metadata(type=inner):
            return _right(inner)
        case inspect.UnionType(types=types):
            return st.one_of([_right(each) for each in types])
        case inspect.StructType(fields=fields):
            return _objects(fields)
        case inspect.ListType(item_type=item):
            return st.lists(near(item), max_size=3)
        case inspect.EnumType(cls=members):
            return st.sampled_from([each.value for each in members])
    return _PLAIN.get(type(kind), texts(*_WORDS, *_TIMES, *IDS))


def _objects(fields: tuple[inspect.Field, ...]) -> st.SearchStrategy[Any]:
    members = {each.encode_name: near(each.type) for each in fields}
    needed = [each.encode_name for each in fields if each.required]
    whole = st.fixed_dictionaries(
        {name: members[name] for name in needed},
        optional={name: each for name, each in members.items() if name not in needed},
    )
    return whole | st.fixed_dictionaries({}, optional=members | {"unknown": anything})


_PLAIN: dict[type[inspect.Type], st.SearchStrategy[Any]] = {
    inspect.BoolType: st.booleans(),
    inspect.DateTimeType: texts(*_TIMES),
    inspect.FloatType: _NUMBERS | st.floats(allow_nan=False),
    inspect.IntType: _NUMBERS,
    inspect.NoneType: st.none(),
    inspect.UUIDType: texts(*IDS),
}


def documents(model: type[Any]) -> st.SearchStrategy[bytes]:
    """JSON of about this form, sometimes with wrong edits in its text."""
    right = near(inspect.type_info(model)).map(json.dumps)
    return (
        right.map(str.encode)
        | right.flatmap(blobs)
        | blobs('{"name":"Trailer"}', "[]", "{}", '"\\ud800"', '{"a":1,"a":2}', *DEEP)
    )
