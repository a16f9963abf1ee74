"""What is said to those who do not get the file: a problem document (RFC 9457)."""

from collections.abc import Sequence

import msgspec
from starlette.types import Send

from cuepost.domain.errors import Gone, NotFound, Refused

Headers = Sequence[tuple[bytes, bytes]]

STANDING: Headers = (
    (b"content-security-policy", b"default-src 'none'; sandbox; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
)


class TurnedAway(Exception):
    """The interface itself has a reason not to hand out the file."""

    def __init__(self, status: int, code: str, detail: str, headers: Headers = ()) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.headers = headers


def turned_away(refused: Refused) -> TurnedAway:
    status = 410 if isinstance(refused, Gone) else 404 if isinstance(refused, NotFound) else 400
    return TurnedAway(status, refused.code, str(refused))


def busy(retry_after: int) -> TurnedAway:
    return TurnedAway(
        503,
        "store_unavailable",
        "The service cannot reach its store now. Try again in a moment.",
        ((b"retry-after", b"%d" % retry_after),),
    )


def broken() -> TurnedAway:
    return TurnedAway(
        500, "internal_error", "The service made a mistake; its operator can find it in the log."
    )


async def tell(reason: TurnedAway, send: Send, *, head: bool) -> None:
    document = {
        "type": f"urn:cuepost:problem:{reason.code}",
        "title": reason.code.replace("_", " ").capitalize(),
        "status": reason.status,
        "detail": str(reason),
        "code": reason.code,
    }
    body = msgspec.json.encode(document)
    headers = [
        *STANDING,
        *reason.headers,
        (b"cache-control", b"no-store"),
        (b"content-length", str(len(body)).encode()),
        (b"content-type", b"application/problem+json"),
    ]
    await send({"type": "http.response.start", "status": reason.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if head else body})
