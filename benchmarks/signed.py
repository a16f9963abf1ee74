"""Prepared signed requests of the usual size, for senders without the service."""

import time
from dataclasses import dataclass

from benchmarks.proof import require_all_seen
from benchmarks.receiving import Receiver, read
from cuepost.domain.instants import compose
from cuepost.domain.signing import SigningSecret, signature

BODY_BYTES = 300
PATH = "/ok"
WEBHOOK = "bench"
SECRET = SigningSecret(bytes(range(32)))


@dataclass(frozen=True, slots=True)
class Signed:
    id: str
    headers: tuple[tuple[str, str], ...]
    body: bytes


def body_of(event_id: str) -> bytes:
    begin = f'{{"type":"project.completed","id":"{event_id}","data":"'.encode()
    return begin + b"x" * (BODY_BYTES - len(begin) - 2) + b'"}'


def event_ids(count: int) -> list[str]:
    """Returns new ones at every call, unless two calls are in the same millisecond."""
    now = int(time.time() * 1000)
    return [str(compose(now, number)) for number in range(count)]


def signed(count: int) -> list[Signed]:
    timestamp = int(time.time())
    return [_signed(event_id, timestamp) for event_id in event_ids(count)]


def _signed(event_id: str, timestamp: int) -> Signed:
    body = body_of(event_id)
    headers = (
        ("content-type", "application/json; charset=utf-8"),
        ("user-agent", "bench"),
        ("accept-encoding", "identity"),
        ("webhook-id", event_id),
        ("webhook-timestamp", str(timestamp)),
        ("webhook-signature", signature(SECRET, event_id, timestamp, body)),
    )
    return Signed(event_id, headers, body)


def require_received(receiver: Receiver, sent: set[str]) -> None:
    """Ends the receiver, and checks that every request arrived with a valid signature."""
    receiver.end()
    seen = [read(at, raw, {PATH: WEBHOOK}) for at, raw in receiver.seen]
    require_all_seen(sent, seen, WEBHOOK, SECRET.reveal())
