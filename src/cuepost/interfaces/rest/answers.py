"""Responses: created by a handler, rendered to bytes, stored for idempotent replays, sent."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from starlette.types import Send

from cuepost.application.admission import Allowance
from cuepost.interfaces.wire_models.entity_tags import entity_tag
from cuepost.interfaces.wire_models.shapes import ResponseModel

Headers = Sequence[tuple[bytes, bytes]]

NO_CONTENT, NOT_MODIFIED = 204, 304

_encode = msgspec.json.Encoder().encode
COMMON_HEADERS: Headers = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
)


@dataclass(frozen=True, slots=True)
class Reply:
    """The result of a handler; `location` is the path of a created object.

    `version` is the version of the webhook or project, for the `ETag`.
    """

    answer: ResponseModel | None = None
    location: str | None = None
    version: str | None = None


@dataclass(frozen=True, slots=True)
class Rendered:
    status: int
    body: bytes
    location: str | None = None
    headers: Headers = ()
    replayed: bool = False
    version: str | None = None


class _Kept(msgspec.Struct, array_like=True):
    status: int
    body: bytes
    location: str | None
    version: str | None = None


_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(_Kept).decode


def render(reply: Reply, status: int, base_url: str) -> Rendered:
    body = b"" if reply.answer is None else _encode(reply.answer)
    location = None if reply.location is None else base_url + reply.location
    return Rendered(status, body, location, version=reply.version)


def not_modified(rendered: Rendered) -> Rendered:
    return Rendered(NOT_MODIFIED, b"", version=rendered.version)


def keep(rendered: Rendered) -> bytes:
    """The form in which a response is stored for its Idempotency-Key."""
    return _pack(_Kept(rendered.status, rendered.body, rendered.location, rendered.version))


def kept(content: bytes, *, replayed: bool) -> Rendered:
    found = _unpack(content)
    return Rendered(
        found.status, found.body, found.location, replayed=replayed, version=found.version
    )


async def transmit(
    rendered: Rendered, send: Send, *, allowance: Allowance | None = None, head: bool = False
) -> None:
    headers = [*COMMON_HEADERS, *rendered.headers]
    if allowance is not None:
        headers.append((b"ratelimit-limit", b"%d" % allowance.limit))
        headers.append((b"ratelimit-remaining", b"%d" % allowance.remaining))
        headers.append((b"ratelimit-reset", b"%d" % allowance.reset_seconds))
    if rendered.status not in (NO_CONTENT, NOT_MODIFIED):
        headers.append((b"content-length", str(len(rendered.body)).encode()))
        media_type = b"application/problem+json" if rendered.status >= 400 else b"application/json"
        headers.append((b"content-type", media_type))
    if rendered.location is not None:
        headers.append((b"location", rendered.location.encode("ascii")))
    if rendered.version is not None:
        headers.append((b"etag", entity_tag(rendered.version).encode("ascii")))
    if rendered.replayed:
        headers.append((b"idempotency-replayed", b"true"))
    await send({"type": "http.response.start", "status": rendered.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if head else rendered.body})
