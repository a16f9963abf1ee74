"""Problem documents (RFC 9457) and the status of each refusal."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from cuepost.domain.errors import (
    AccountMoving,
    Conflict,
    FieldError,
    Forbidden,
    Gone,
    Invalid,
    MediaUnavailable,
    NotFound,
    PreconditionFailed,
    RateLimited,
    Refused,
    Unauthenticated,
)
from cuepost.interfaces.rest.answers import Headers, Rendered
from cuepost.interfaces.wire_models.unavailable import why_unavailable
from cuepost.ports.store import StoreError

MEDIA_TYPE = "application/problem+json"

STATUS_OF_KIND: Mapping[type[Refused], int] = {
    Unauthenticated: 401,
    Forbidden: 403,
    NotFound: 404,
    Conflict: 409,
    Gone: 410,
    PreconditionFailed: 412,
    Invalid: 422,
    RateLimited: 429,
    MediaUnavailable: 503,
    AccountMoving: 503,
}

_encode = msgspec.json.Encoder().encode


class Rejected(Exception):
    """The interface rejects the request before a use case runs."""

    def __init__(self, status: int, code: str, detail: str, headers: Headers = ()) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.headers = headers


class UnknownPath(Rejected):
    """The path is not known."""

    def __init__(self) -> None:
        super().__init__(404, "not_found", "There is nothing at this path.")


class StoreBusy(Rejected):
    """The store cannot be reached, or is too busy."""

    def __init__(self, error: StoreError) -> None:
        super().__init__(503, "store_unavailable", why_unavailable(error))


class InternalError(Rejected):
    """A bug; only the log has its details."""

    def __init__(self) -> None:
        super().__init__(
            500,
            "internal_error",
            "An internal error occurred; the operator of the service can find it in the log.",
        )


def status_of(kind: type[Refused]) -> int:
    return next(STATUS_OF_KIND[each] for each in kind.__mro__ if each in STATUS_OF_KIND)


def problem_of(refusal: Refused | Rejected) -> Rendered:
    if isinstance(refusal, Rejected):
        body = _document(refusal.status, refusal.code, str(refusal), ())
        return Rendered(refusal.status, body, headers=tuple(refusal.headers))
    status = status_of(type(refusal))
    errors = refusal.errors if isinstance(refusal, Invalid) else ()
    code = _code(refusal, errors)
    body = _document(status, code, _detail(refusal, errors), errors, **refusal.details)
    return Rendered(status, body, headers=_headers_of(refusal))


def title_of(code: str) -> str:
    return code.replace("_", " ").capitalize()


def _code(refusal: Refused, errors: Sequence[FieldError]) -> str:
    """The code of a request with a single field error is the code of that error."""
    return errors[0].code if len(errors) == 1 else refusal.code


def _detail(refusal: Refused, errors: Sequence[FieldError]) -> str:
    """Name the field, for clients that show nothing but the detail."""
    sentence = str(refusal)
    if errors and sentence == errors[0].message:
        return f"{errors[0].field}: {sentence}"
    return sentence


def _document(
    status: int, code: str, detail: str, errors: Sequence[FieldError], **details: Any
) -> bytes:
    document: dict[str, Any] = {
        "type": f"urn:cuepost:problem:{code}",
        "title": title_of(code),
        "status": status,
        "detail": detail,
        "code": code,
    }
    if errors:
        document["errors"] = errors
    return _encode(document | details)


def _headers_of(refusal: Refused) -> Headers:
    if isinstance(refusal, Unauthenticated):
        return ((b"www-authenticate", b"Bearer"),)
    return ()
