"""What a history is made of; instants are in seconds since the epoch."""

import base64
from collections.abc import Iterator
from dataclasses import dataclass

ENDLESS = float("inf")
# Instants are stored at millisecond precision.
PRECISION = 0.002
# For so long a worker may hold in memory what it is about to send.
LEEWAY = 1.0 + PRECISION


@dataclass(frozen=True, slots=True)
class Seen:
    """A request as a receiver got it; `clock` is what the sender's clock said, if it was wrong."""

    at: float
    webhook_id: str
    headers: dict[str, str]
    body: bytes
    answered: int | None = 200
    ended_at: float | None = None
    clock: float | None = None

    @property
    def event_id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def key(self) -> tuple[str, str]:
        return self.webhook_id, self.event_id

    @property
    def is_taken(self) -> bool:
        return self.answered is not None and 200 <= self.answered < 300

    @property
    def sent_at(self) -> float:
        """By the sender's clock."""
        return self.at if self.clock is None else self.clock


@dataclass(frozen=True, slots=True)
class StoredAttempt:
    budget: int
    number: int
    outcome: str
    started_at: float
    duration_ms: float


@dataclass(frozen=True, slots=True)
class StoredDelivery:
    id: str
    webhook_id: str
    event_id: str
    status: str
    reason: str | None
    attempts: tuple[StoredAttempt, ...]


@dataclass(frozen=True, slots=True)
class SecretLife:
    """From when a secret signs, and when it ends: by the clock, or `cut` short by hand."""

    secret: str
    since: float
    until: float = ENDLESS
    cut: float = ENDLESS


@dataclass(frozen=True, slots=True)
class Stop:
    """Nothing goes to this endpoint, or about this project, while it holds.

    One that comes by itself holds from the instant on at which the sender's clock is `due`.
    """

    since: float
    until: float = ENDLESS
    webhook_id: str | None = None
    project_id: str | None = None
    due: float = -ENDLESS

    def forbids(self, seen: Seen) -> bool:
        return self.since + LEEWAY < seen.at < self.until and self.due + LEEWAY < seen.sent_at


@dataclass(frozen=True, slots=True)
class Look:
    """Someone was shown a row: its kind, and the ids in it."""

    viewer: str
    kind: str
    ids: tuple[str, ...]


def spellings(secret: str) -> Iterator[str]:
    """The ways in which a secret could be written where it must not be."""
    text = secret.removeprefix("whsec_")
    key = base64.b64decode(text)
    yield from (text, text.rstrip("="), key.hex(), repr(key)[2:-1])
