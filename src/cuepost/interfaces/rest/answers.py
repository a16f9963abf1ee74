"""Responses as values: created by a handler, as bytes, and stored for idempotent replays."""

from collections.abc import Sequence

import msgspec

from cuepost.domain.immutable import immutable
from cuepost.interfaces.wire_models.shapes import ResponseModel

Headers = Sequence[tuple[bytes, bytes]]

NO_CONTENT, NOT_MODIFIED = 204, 304

COMMON_HEADERS: Headers = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
)


@immutable
class Reply:
    """The result of a handler; `location` is the path of a created object.

    `version` is the version of the webhook or project, for the `ETag`.
    """

    answer: ResponseModel | None = None
    location: str | None = None
    version: str | None = None


@immutable
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
