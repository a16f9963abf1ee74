"""Reads queries strictly: malformed, duplicate or unknown parameters are refused."""

from typing import TypeVar
from urllib.parse import parse_qsl

import msgspec

from cuepost.domain.errors import FieldError, Invalid
from cuepost.interfaces.wire_models.faults import field_error
from cuepost.interfaces.wire_models.shapes import Request

T = TypeVar("T", bound=Request)

MOST_PARAMETERS = 50
NUMBERS = {"limit", "wait"}
FLAGS = {"includeDelivered"}
BOOLEANS = {"true": True, "false": False}


def read_query(query: bytes, model: type[T]) -> T:
    values: dict[str, str | int] = {}
    for name, value in _pairs(query):
        if name in values:
            raise Invalid(FieldError(name, "duplicate_parameter", "Send this parameter only once."))
        values[name] = value
    for name in NUMBERS & values.keys():
        text = values[name]
        if isinstance(text, str) and text.isascii() and text.isdecimal() and len(text) < 10:
            values[name] = int(text)
    for name in FLAGS & values.keys():
        values[name] = BOOLEANS.get(str(values[name]), values[name])
    try:
        return msgspec.convert(values, model)
    except msgspec.ValidationError as error:
        raise Invalid(field_error(str(error), model)) from None


def query_without_parameters(model: type[T]) -> T | None:
    """The query of a request without parameters; None if a parameter is required."""
    try:
        return read_query(b"", model)
    except Invalid:
        return None


def _pairs(query: bytes) -> list[tuple[str, str]]:
    if not query:
        return []
    try:
        return parse_qsl(
            query.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=MOST_PARAMETERS,
        )
    except ValueError:
        raise Invalid(
            FieldError("query", "malformed_query", "Percent-encode the query as UTF-8.")
        ) from None
