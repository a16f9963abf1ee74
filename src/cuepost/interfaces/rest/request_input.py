"""Reads requests strictly: the ids in the path, the query, the conditions and the body."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import parse_qsl
from uuid import UUID

import msgspec
from starlette.types import Receive, Scope

from cuepost.domain.account_reference import AccountReference, account_reference
from cuepost.domain.errors import FieldError, Invalid, NotFound
from cuepost.domain.version import Expected
from cuepost.interfaces.rest.answers import Rendered
from cuepost.interfaces.rest.operation import Operation
from cuepost.interfaces.rest.problems import Rejected
from cuepost.interfaces.wire_models.entity_tags import tags_in
from cuepost.interfaces.wire_models.faults import field_error
from cuepost.interfaces.wire_models.shapes import Request

T = TypeVar("T", bound=Request)

ACCOUNT_ID = "accountId"
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
MOST_PARAMETERS = 50
NUMBERS = {"limit", "wait"}
FLAGS = {"includeDelivered"}
BOOLEANS = {"true": True, "false": False}

_JSON = re.compile(rb'application/json\s*(?:;\s*charset\s*=\s*"?utf-?8"?\s*)?', re.IGNORECASE)
_WITHOUT_BODY = ("GET", "DELETE")

_encode = msgspec.json.Encoder().encode


def named_in(path_params: Mapping[str, str]) -> tuple[AccountReference | None, dict[str, UUID]]:
    """An account can be named by its external id as well; everything else only by its id."""
    if ACCOUNT_ID not in path_params:
        return None, _ids(path_params)
    others = {name: text for name, text in path_params.items() if name != ACCOUNT_ID}
    return account_reference(path_params[ACCOUNT_ID]), _ids(others)


def _ids(path_params: Mapping[str, str]) -> dict[str, UUID]:
    """A malformed id is treated like an unknown id."""
    if not all(map(_UUID.fullmatch, path_params.values())):
        raise NotFound
    return {name: UUID(text) for name, text in path_params.items()}


def is_known(scope: Scope, rendered: Rendered) -> bool:
    condition = _listed(scope, b"if-none-match")
    if condition is None:
        return False
    known = tags_in(condition, weakly=True)
    return known is None or rendered.version in known


def expected_by(scope: Scope) -> Expected:
    condition = _listed(scope, b"if-match")
    return None if condition is None else tags_in(condition, weakly=False)


def _listed(scope: Scope, name: bytes) -> str | None:
    """The value of a list header, which may be repeated."""
    lines = [value for each, value in scope["headers"] if each == name]
    return b", ".join(lines).decode("latin-1") if lines else None


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


class ClientGone(Exception):
    """The client disconnected before its request was complete; no response is needed."""


class BodyReader:
    """Reads the bodies of one call."""

    def __init__(self, operation: Operation) -> None:
        self._model = operation.body
        self._decode = msgspec.json.Decoder(operation.body).decode
        self._limit = operation.body_limit
        self._is_ignored = operation.method in _WITHOUT_BODY
        self._nothing = None if operation.takes_body else operation.body()

    async def read(
        self, headers: Mapping[bytes, bytes], receive: Receive
    ) -> tuple[Request | None, bytes]:
        """The body and its canonical encoding; its size may not be announced, so it is counted."""
        if self._is_ignored:
            return self._nothing, b""
        announced = headers.get(b"content-length", b"0")
        if not announced.isdigit() or int(announced[:20]) > self._limit:
            raise self._too_large()
        body, more = bytearray(), True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                raise ClientGone
            body += message.get("body", b"")
            if len(body) > self._limit:
                raise self._too_large()
            more = message.get("more_body", False)
        if self._nothing is not None and not body:
            return self._nothing, b""
        encoded = headers.get(b"content-encoding", b"identity").lower() != b"identity"
        if encoded or not _JSON.fullmatch(headers.get(b"content-type", b"").strip()):
            raise Rejected(
                415,
                "unsupported_media_type",
                "Send JSON in UTF-8, uncompressed, with 'Content-Type: application/json'.",
                ((b"accept", b"application/json"), (b"accept-encoding", b"identity")),
            )
        return self.decoded(bytes(body))

    def decoded(self, body: bytes) -> tuple[Request, bytes]:
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

    def _too_large(self) -> Rejected:
        detail = f"The body may have at most {self._limit} bytes; split the request."
        return Rejected(413, "payload_too_large", detail)


def _read_fallback(body: bytes, model: type[Request]) -> Request:
    try:
        return msgspec.json.decode(body, type=model)
    except msgspec.ValidationError as error:
        raise Invalid(field_error(str(error), model)) from None
    except msgspec.DecodeError:
        raise _malformed() from None


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
