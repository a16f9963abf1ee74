"""Reads bodies and queries strictly: malformed, duplicate or unknown input is refused."""

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
BOOLEANS = {"true": True, "false": False}

_encode = msgspec.json.Encoder().encode


class BodyReader:
    def __init__(self, model: type[Request]) -> None:
        self._model = model
        self._decode = msgspec.json.Decoder(model).decode

    def read(self, body: bytes) -> tuple[Request, bytes]:
        """The decoded body and its canonical encoding; a fallback body is returned unchanged."""
        try:
            decoded = self._decode(body)
        except msgspec.ValidationError as error:
            _require_well_formed(body)
            if self._model.fallback is None:
                raise Invalid(field_error(str(error), self._model)) from None
            return _read_fallback(body, self._model.fallback), body
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise _malformed() from None
        canonical = _encode(decoded)
        # Decoding drops duplicate keys, so the canonical form has fewer quotes than the body.
        if b"\\" in body or body.count(b'"') != canonical.count(b'"'):
            _refuse_duplicate_keys(body)
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


def _require_well_formed(body: bytes) -> None:
    """Report malformed JSON and duplicate keys before an invalid field."""
    try:
        msgspec.json.decode(body)
    except msgspec.ValidationError:
        pass  # A number that is too large for msgspec is still well-formed JSON.
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise _malformed() from None
    _refuse_duplicate_keys(body)


def _refuse_duplicate_keys(body: bytes) -> None:
    try:
        json.loads(body.decode(), object_pairs_hook=_each_once, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        raise _malformed() from None


def _each_once(pairs: Sequence[tuple[str, Any]]) -> None:
    if len(dict(pairs)) != len(pairs):
        raise Rejected(400, "duplicate_key", "An object in the body has a duplicate key.")


def _malformed() -> Rejected:
    return Rejected(400, "malformed_json", "The body is not valid JSON in UTF-8.")
