"""Reads bodies and queries strictly: what is unreadable, doubled or unknown is refused."""

import json
from collections.abc import Sequence
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import msgspec

from cuepost.domain.errors import FieldError, Invalid
from cuepost.interfaces.rest.problems import Rejected
from cuepost.interfaces.wire_models.faults import field_error
from cuepost.interfaces.wire_models.shapes import Request

T = TypeVar("T", bound=Request)

MOST_PARAMETERS = 50
NUMBERS = {"limit", "wait"}
FLAGS = {"includeDelivered"}
TRUTHS = {"true": True, "false": False}

_encode = msgspec.json.Encoder().encode


class BodyReader:
    def __init__(self, model: type[Request]) -> None:
        self._model = model
        self._decode = msgspec.json.Decoder(model).decode

    def read(self, body: bytes) -> tuple[Request, bytes]:
        """The decoded body, and the same in one canonical form (of a fallback, as it came)."""
        try:
            decoded = self._decode(body)
        except msgspec.ValidationError as error:
            _require_readable(body)
            if self._model.fallback is None:
                raise Invalid(field_error(str(error), self._model)) from None
            return _read_fallback(body, self._model.fallback), body
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise _malformed() from None
        canonical = _encode(decoded)
        # Decoding keeps the last of two equal keys, and then some quotes are missing.
        if b"\\" in body or body.count(b'"') != canonical.count(b'"'):
            _refuse_doubled_keys(body)
        return decoded, canonical


def _read_fallback(body: bytes, model: type[Request]) -> Request:
    try:
        return msgspec.json.decode(body, type=model)
    except msgspec.ValidationError as error:
        raise Invalid(field_error(str(error), model)) from None
    except msgspec.DecodeError:
        raise _malformed() from None


def read_query(query: bytes, model: type[T]) -> T:
    values: dict[str, str | int] = {}
    for name, value in _pairs(query):
        if name in values:
            raise Invalid(FieldError(name, "duplicate_parameter", "Give this parameter once."))
        values[name] = value
    for name in NUMBERS & values.keys():
        text = values[name]
        if isinstance(text, str) and text.isascii() and text.isdecimal() and len(text) < 10:
            values[name] = int(text)
    for name in FLAGS & values.keys():
        values[name] = TRUTHS.get(str(values[name]), values[name])
    try:
        return msgspec.convert(values, model)
    except msgspec.ValidationError as error:
        raise Invalid(field_error(str(error), model)) from None


def query_without_parameters(model: type[T]) -> T | None:
    """What every request without a query means; None where a parameter is required."""
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


def _require_readable(body: bytes) -> None:
    """A fault of validity matters only where the whole body is readable JSON."""
    try:
        msgspec.json.decode(body)
    except msgspec.ValidationError:
        pass  # a number too large for any type: readable all the same
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise _malformed() from None
    _refuse_doubled_keys(body)


def _refuse_doubled_keys(body: bytes) -> None:
    try:
        json.loads(body.decode(), object_pairs_hook=_each_once, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        raise _malformed() from None


def _each_once(pairs: Sequence[tuple[str, Any]]) -> None:
    if len(dict(pairs)) != len(pairs):
        raise Rejected(
            400, "duplicate_key", "The body has a key twice in one object; give each key once."
        )


def _malformed() -> Rejected:
    return Rejected(400, "malformed_json", "The body is not readable JSON in UTF-8.")
