"""Turns a validation error of msgspec into a field, a stable code and a message."""

import re
from collections.abc import Callable
from typing import Any

from msgspec import inspect

from cuepost.domain.errors import FieldError
from cuepost.interfaces.wire_models.shapes import PATTERN_FAULTS

_LONGEST_NAME = 100
_REPORT = re.compile(r"(?P<fault>.*?)(?: - at `\$(?P<path>.*)`)?", re.DOTALL)
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")
_KINDS = {
    "str": "text",
    "int": "a whole number",
    "int | float": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "object": "an object",
    "array": "a list",
    "null": "null",
    "datetime": "a time",
    "uuid": "an id",
}
_BY_PATTERN = {repr(pattern): fault for pattern, fault in PATTERN_FAULTS.items()}

Words = tuple[str, str]


def field_error(report: str, model: type[Any]) -> FieldError:
    parts = _REPORT.fullmatch(report)
    fault, path = (parts["fault"], parts["path"] or "") if parts else (report, "")
    for pattern, code, child in (
        (r"Object missing required field `(.*)`", "missing_field", "This field is required."),
        (r"Object contains unknown field `(.*)`", "unknown_field", "This field is not known."),
    ):
        if found := re.fullmatch(pattern, fault, re.DOTALL):
            return FieldError(_named(f"{path}.{_printable(found[1])}"), code, child)
    code, message = _words(fault, path, model)
    return FieldError(_named(path), code, message)


def _words(fault: str, path: str, model: type[Any]) -> Words:
    for pattern, words in _FAULTS:
        if found := pattern.fullmatch(fault):
            return words(found)
    if fault.startswith("Invalid enum value"):
        choices = ", ".join(map(str, _choices(model, path)))
        return "invalid_value", f"Choose from {choices}."
    return "invalid_value", "This value is not valid here."


def _wrong_type(found: re.Match[str]) -> Words:
    wanted, got = (_kinds(part) for part in found.groups())
    return "wrong_type", f"This must be {wanted}, not {got}."


def _kinds(names: str) -> str:
    return _KINDS.get(names) or " or ".join(_KINDS.get(each, each) for each in names.split(" | "))


def _length(found: re.Match[str]) -> Words:
    what = "characters" if found[1] == "str" else "entries"
    if found[2] == "<=":
        return "too_long", f"At most {found[3]} {what} are allowed."
    return "too_short", f"At least {found[3]} {what} are needed."


def _bound(found: re.Match[str]) -> Words:
    if found[1] == "<=":
        return "too_large", f"This can be at most {found[2]}."
    return "too_small", f"This must be at least {found[2]}."


def _always(code: str, message: str) -> Callable[[re.Match[str]], Words]:
    return lambda _: (code, message)


_FAULTS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Words]], ...] = (
    (re.compile(r"Expected `([^`]*)`, got `([^`]*)`"), _wrong_type),
    (re.compile(r"Expected `(str|array)` of length (<=|>=) (\d+)"), _length),
    (re.compile(r"Expected `(?:int|float)` (<=|>=) (-?\d+)(?:\.0)?"), _bound),
    (
        re.compile("Expected `float` that's a multiple of 1(?:\\.0)?"),
        _always("wrong_type", "This must be a whole number."),
    ),
    (
        re.compile(r"Expected `str` matching regex (.*)", re.DOTALL),
        lambda found: _BY_PATTERN.get(
            found[1], ("invalid_value", "This value has the wrong format.")
        ),
    ),
    (re.compile("Invalid UUID"), _always("invalid_id", "This must be a UUID.")),
    (
        re.compile("Invalid RFC3339 .*|Expected `datetime` with .*"),
        _always(
            "invalid_time",
            "Use a time with an offset, such as 2026-01-02T03:04:05Z (in a query: + as %2B).",
        ),
    ),
    (re.compile("Number out of range"), _always("too_large", "This number is too large.")),
)


def _named(path: str) -> str:
    return path.removeprefix(".") or "body"


def _printable(name: str) -> str:
    return "".join(each if each.isprintable() else "�" for each in name[:_LONGEST_NAME])


def _choices(model: type[Any], path: str) -> tuple[Any, ...]:
    """The allowed values of the field at this path."""
    kind: inspect.Type = inspect.type_info(model)
    for name, _ in _STEP.findall(path):
        kind = _plain(kind)
        if isinstance(kind, inspect.StructType):
            kind = next(each.type for each in kind.fields if each.encode_name == name)
        elif isinstance(kind, inspect.ListType):
            kind = kind.item_type
    kind = _plain(kind)
    return tuple(kind.cls) if isinstance(kind, inspect.EnumType) else ()


def _plain(kind: inspect.Type) -> inspect.Type:
    """The type without metadata and without null."""
    while isinstance(kind, inspect.Metadata | inspect.UnionType):
        if isinstance(kind, inspect.Metadata):
            kind = kind.type
        else:
            kind = next(each for each in kind.types if not isinstance(each, inspect.NoneType))
    return kind
