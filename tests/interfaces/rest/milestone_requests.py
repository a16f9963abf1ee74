"""Requests to the hot route, most of them bad, each with a name under which its answer is kept."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

PATH = "/v1/milestones"
JSON = {"Content-Type": "application/json"}
LIMIT = 1024 * 1024
UNKNOWN = "0198c0de-5a3b-7d21-9c4e-000000000009"
ENTRY = {"reportId": "r-1", "projectId": UNKNOWN, "status": "completed"}
ENTRIES = {"milestones": [ENTRY]}
GOOD = json.dumps(ENTRIES).encode()


@dataclass(frozen=True)
class Asked:
    """`key` names one of the caller's keys, or is itself the whole Authorization header."""

    body: bytes = GOOD
    headers: dict[str, str] = field(default_factory=dict)
    key: str = "pipeline"
    method: str = "POST"
    path: str = PATH
    pieces: int = 1

    @property
    def content(self) -> bytes | AsyncIterator[bytes]:
        return self.body if self.pieces == 1 else self._in_pieces()

    async def _in_pieces(self) -> AsyncIterator[bytes]:
        size = -(-len(self.body) // self.pieces)
        for start in range(0, len(self.body), size):
            yield self.body[start : start + size]


def _with(**headers: str) -> dict[str, str]:
    return JSON | {name.replace("_", "-"): value for name, value in headers.items()}


def _entry(**changed: Any) -> Asked:
    return Asked(json.dumps({"milestones": [ENTRY | changed]}).encode(), JSON)


def _body(body: bytes) -> Asked:
    return Asked(body, JSON)


def _padded(size: int) -> bytes:
    return GOOD + b" " * (size - len(GOOD))


CALLERS = {
    "no key": Asked(headers=JSON, key=""),
    "another scheme": Asked(headers=JSON, key="Basic abc"),
    "no token": Asked(headers=JSON, key="Bearer "),
    "two tokens": Asked(headers=JSON, key="Bearer a b"),
    "not a token of ours": Asked(headers=JSON, key="Bearer nonsense"),
    "unknown key": Asked(headers=JSON, key=f"Bearer cpk_{'0' * 32}{'A' * 43}"),
    "key of an account": Asked(headers=JSON, key="owner"),
    "no key and a bad body": Asked(b"{", key=""),
}
ADDRESSES = {
    "get": Asked(b"", method="GET"),
    "head": Asked(b"", method="HEAD"),
    "put": Asked(headers=JSON, method="PUT"),
    "options": Asked(b"", method="OPTIONS"),
    "unknown method": Asked(b"", method="BREW"),
    "slash": Asked(headers=JSON, path=f"{PATH}/"),
    "below": Asked(headers=JSON, path=f"{PATH}/1"),
    "capitals": Asked(headers=JSON, path="/v1/Milestones"),
    "double slash": Asked(headers=JSON, path="/v1//milestones"),
    "query": Asked(headers=JSON, path=f"{PATH}?limit=1"),
    "query twice": Asked(headers=JSON, path=f"{PATH}?a=1&a=1"),
    "bad query": Asked(headers=JSON, path=f"{PATH}?a=%ff"),
    "empty query": Asked(headers=JSON, path=f"{PATH}?"),
}
BODIES = {
    "no content type": Asked(),
    "plain text": Asked(headers={"Content-Type": "text/plain"}),
    "latin-1": Asked(headers={"Content-Type": "application/json; charset=latin-1"}),
    "compressed": Asked(headers=_with(Content_Encoding="gzip")),
    "announced as endless": Asked(headers=_with(Content_Length="9" * 26)),
    "announced as negative": Asked(headers=_with(Content_Length="-1")),
    "no number as length": Asked(headers=_with(Content_Length="ten")),
    "one byte too long": Asked(_padded(LIMIT + 1), JSON),
    "one byte too long, chunked": Asked(_padded(LIMIT + 1), JSON, pieces=9),
    "longer than announced": Asked(_padded(LIMIT + 1), _with(Content_Length="10"), pieces=9),
    "as long as may be": Asked(_padded(LIMIT), JSON),
    "as long as may be, chunked": Asked(_padded(LIMIT), JSON, pieces=9),
    "empty": _body(b""),
    "cut off": _body(GOOD[:-1]),
    "not utf-8": _body(GOOD.replace(b"r-1", b"\xff")),
    "lone surrogate": _body(GOOD.replace(b"r-1", rb"\ud800")),
    "deep": _body(b"[" * 30_000),
    "key twice": _body(b'{"milestones": [], ' + GOOD[1:]),
    "key twice in an entry": _body(GOOD.replace(b'"status"', b'"reportId": "r-2", "status"')),
    "key twice, escaped": _body(GOOD.replace(b'"status"', rb'"report\u0049d": "r-2", "status"')),
    "a list": _body(b"[]"),
    "no milestones": _body(b"{}"),
    "empty list": _body(b'{"milestones": []}'),
    "too many": _body(json.dumps({"milestones": [ENTRY] * 501}).encode()),
    "unknown field": _body(json.dumps(ENTRIES | {"colour": "red"}).encode()),
    "entry is no object": _body(b'{"milestones": [5]}'),
}
ENTRIES_JUDGED = {
    "unknown project": Asked(headers=JSON),
    "no report id": _body(b'{"milestones": [{}]}'),
    "long report id": _entry(reportId="r" * 201),
    "control character": _entry(reportId="r\n1"),
    "no uuid": _entry(projectId="7"),
    "unknown status": _entry(status="done"),
    "unknown stage": _entry(stage="review"),
    "error without code": _entry(error={"message": "broken"}),
    "not a time": _entry(occurredAt="yesterday"),
    "time out of range": _entry(occurredAt="0001-01-01T00:00:00Z"),
    "huge number": _body(GOOD.replace(b'"r-1"', b"1" + b"0" * 400)),
    "unknown field of an entry": _entry(colour="red"),
    "two of which one is bad": _body(json.dumps({"milestones": [ENTRY, {"x": 1}]}).encode()),
    "artifact with a bad key": _entry(
        artifacts=[{"kind": "v", "name": "n", "key": "../x", "contentType": "a/b", "sizeBytes": 1}]
    ),
}
REPETITIONS = {
    "empty idempotency key": Asked(headers=_with(Idempotency_Key="")),
    "long idempotency key": Asked(headers=_with(Idempotency_Key="k" * 201)),
    "idempotency key with a space": Asked(headers=_with(Idempotency_Key="a b")),
    "idempotency key, first use": Asked(headers=_with(Idempotency_Key="k-1")),
    "idempotency key, repeated": Asked(headers=_with(Idempotency_Key="k-1")),
    "idempotency key, other body": Asked(b'{"milestones": [{}]}', _with(Idempotency_Key="k-1")),
    "idempotency key, bad body": Asked(b"{", _with(Idempotency_Key="k-1")),
}
REQUESTS = CALLERS | ADDRESSES | BODIES | ENTRIES_JUDGED | REPETITIONS
