"""Reads request bodies strictly: their size and media type, and the JSON in them."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from starlette.types import Receive

from cuepost.domain.errors import Invalid
from cuepost.interfaces.rest.operation import Operation
from cuepost.interfaces.rest.problems import Rejected
from cuepost.interfaces.wire_models.faults import field_error
from cuepost.interfaces.wire_models.shapes import Request

_JSON = re.compile(rb'application/json\s*(?:;\s*charset\s*=\s*"?utf-?8"?\s*)?', re.IGNORECASE)
_WITHOUT_BODY = ("GET", "DELETE")

_encode = msgspec.json.Encoder().encode


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
