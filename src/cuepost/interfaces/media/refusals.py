"""Problem documents (RFC 9457) for requests that do not get the file."""

from collections.abc import Sequence

import msgspec
from starlette.types import Send

from cuepost.domain.errors import Gone, NotFound, Refused

Headers = Sequence[tuple[bytes, bytes]]

COMMON_HEADERS: Headers = (
    (b"content-security-policy", b"default-src 'none'; sandbox; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
)


class RequestRejected(Exception):
    """The interface rejects the request."""

    def __init__(self, status: int, code: str, detail: str, headers: Headers = ()) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.headers = headers


def rejection_of(refused: Refused) -> RequestRejected:
    status = 410 if isinstance(refused, Gone) else 404 if isinstance(refused, NotFound) else 400
    return RequestRejected(status, refused.code, str(refused))


def busy(retry_after: int) -> RequestRejected:
    return RequestRejected(
        503,
        "store_unavailable",
        "The service cannot reach its store. Try again in a moment.",
        ((b"retry-after", b"%d" % retry_after),),
    )


def broken() -> RequestRejected:
    return RequestRejected(
        500,
        "internal_error",
        "An internal error occurred; the operator of the service can find it in the log.",
    )


async def send_problem(reason: RequestRejected, send: Send, *, head: bool) -> None:
    document = {
        "type": f"urn:cuepost:problem:{reason.code}",
        "title": reason.code.replace("_", " ").capitalize(),
        "status": reason.status,
        "detail": str(reason),
        "code": reason.code,
    }
    body = msgspec.json.encode(document)
    headers = [
        *COMMON_HEADERS,
        *reason.headers,
        (b"cache-control", b"no-store"),
        (b"content-length", str(len(body)).encode()),
        (b"content-type", b"application/problem+json"),
    ]
    await send({"type": "http.response.start", "status": reason.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if head else body})
