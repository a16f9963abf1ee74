"""Reads request bodies: checks the media type and enforces the size limit while reading."""

import re
from collections.abc import Mapping

from starlette.types import Receive

from cuepost.interfaces.rest.problems import Rejected

_JSON = re.compile(rb'application/json\s*(?:;\s*charset\s*=\s*"?utf-?8"?\s*)?', re.IGNORECASE)


class ClientGone(Exception):
    """The client disconnected before its request was complete; no response is needed."""


async def read_body(headers: Mapping[bytes, bytes], receive: Receive, limit: int) -> bytes:
    announced = headers.get(b"content-length", b"0")
    if not announced.isdigit() or int(announced[:20]) > limit:
        raise _too_large(limit)
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            raise ClientGone
        part: bytes = message.get("body", b"")
        more = message.get("more_body", False)
        size += len(part)
        if size > limit:
            raise _too_large(limit)
        parts.append(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def require_json(headers: Mapping[bytes, bytes]) -> None:
    encoded = headers.get(b"content-encoding", b"identity").lower() != b"identity"
    if encoded or not _JSON.fullmatch(headers.get(b"content-type", b"").strip()):
        raise Rejected(
            415,
            "unsupported_media_type",
            "Send JSON in UTF-8, uncompressed, with 'Content-Type: application/json'.",
            ((b"accept", b"application/json"), (b"accept-encoding", b"identity")),
        )


def _too_large(limit: int) -> Rejected:
    return Rejected(
        413, "payload_too_large", f"The body may have at most {limit} bytes; split the request."
    )
