"""The answers to refused connections: problem documents, built once."""

import json
from collections.abc import Mapping
from http import HTTPStatus

from cuepost.adapters.system_clock import system_entropy
from cuepost.application.retry_after import LEAST_SECONDS, SPREAD_SECONDS, retry_after
from cuepost.bootstrap.inbound_guard import Refusal


def _answer(status: HTTPStatus, code: str, detail: str, seconds: int | None = None) -> bytes:
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
        *([] if seconds is None else [f"retry-after: {seconds}"]),
        "connection: close",
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


_TOO_LARGE = _answer(
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    "request_head_too_large",
    "There are more headers, or longer ones, than this service accepts.",
)
_TOO_SLOW = _answer(
    HTTPStatus.REQUEST_TIMEOUT, "request_timeout", "The request did not arrive in time."
)
# By the seconds of Retry-After.
_TOO_MANY = {
    seconds: _answer(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "too_many_connections",
        "Too many connections are open; close some, or try again later.",
        seconds,
    )
    for seconds in range(LEAST_SECONDS, LEAST_SECONDS + SPREAD_SECONDS + 1)
}

_ANSWERS: Mapping[Refusal, bytes] = {
    Refusal.REQUEST_LINE: _answer(
        HTTPStatus.REQUEST_URI_TOO_LONG,
        "request_line_too_long",
        "The address in the request line is longer than this service accepts.",
    ),
    Refusal.HEADER_BYTES: _TOO_LARGE,
    Refusal.HEADER_COUNT: _TOO_LARGE,
    Refusal.MALFORMED: _answer(
        HTTPStatus.BAD_REQUEST, "malformed_request", "This is not a valid HTTP/1.1 request."
    ),
    Refusal.HEAD_TIMEOUT: _TOO_SLOW,
    Refusal.BODY_TIMEOUT: _TOO_SLOW,
}


def answer_to(reason: Refusal) -> bytes | None:
    if reason in (Refusal.CLIENT_CONNECTIONS, Refusal.ALL_CONNECTIONS):
        return _TOO_MANY[retry_after(system_entropy)]
    return _ANSWERS.get(reason)
