"""What a client reads when its connection is refused: a problem document, made once."""

import json
from collections.abc import Mapping
from http import HTTPStatus

from cuepost.bootstrap.inbound_guard import Refusal

TRY_AGAIN_SECONDS = 1


def _answer(status: HTTPStatus, code: str, detail: str) -> bytes:
    document = {
        "type": f"urn:cuepost:problem:{code}",
        "title": code.replace("_", " ").capitalize(),
        "status": status.value,
        "detail": detail,
        "code": code,
    }
    body = json.dumps(document).encode()
    lines = [
        f"HTTP/1.1 {status.value} {status.phrase}",
        "content-type: application/problem+json",
        f"content-length: {len(body)}",
        "cache-control: no-store",
        *(
            [f"retry-after: {TRY_AGAIN_SECONDS}"]
            if status >= HTTPStatus.INTERNAL_SERVER_ERROR
            else []
        ),
        "connection: close",
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


_TOO_LARGE = _answer(
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    "request_head_too_large",
    "The headers are more, or longer, than this service reads.",
)
_TOO_SLOW = _answer(
    HTTPStatus.REQUEST_TIMEOUT, "request_timeout", "The request did not arrive in time."
)
_TOO_MANY = _answer(
    HTTPStatus.SERVICE_UNAVAILABLE,
    "too_many_connections",
    "Too many connections are open; close some, or try again later.",
)

ANSWERS: Mapping[Refusal, bytes] = {
    Refusal.REQUEST_LINE: _answer(
        HTTPStatus.REQUEST_URI_TOO_LONG,
        "request_line_too_long",
        "The address in the request line is longer than this service reads.",
    ),
    Refusal.HEADER_BYTES: _TOO_LARGE,
    Refusal.HEADER_COUNT: _TOO_LARGE,
    Refusal.MALFORMED: _answer(
        HTTPStatus.BAD_REQUEST, "malformed_request", "This is not a valid HTTP/1.1 request."
    ),
    Refusal.HEAD_TIMEOUT: _TOO_SLOW,
    Refusal.BODY_TIMEOUT: _TOO_SLOW,
    Refusal.CLIENT_CONNECTIONS: _TOO_MANY,
    Refusal.ALL_CONNECTIONS: _TOO_MANY,
}
