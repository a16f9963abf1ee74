"""A webhook endpoint: its URL, its event types, its signing secrets and its health."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from cuepost.domain.errors import FieldError, Invalid, RotationOverlapActive
from cuepost.domain.event_catalog import BY_NAME, DEFAULT_SUBSCRIPTION, SUBSCRIBABLE
from cuepost.domain.immutable import immutable
from cuepost.domain.instants import to_text


@dataclass(frozen=True, slots=True)
class Endpoint:
    account_id: UUID
    id: UUID
    url: str
    events: tuple[str, ...]
    description: str
    enabled: bool
    created_at: datetime
    updated_at: datetime
    last_delivered_at: datetime | None = None
    failing_since: datetime | None = None
    troubled_since: datetime | None = None
    last_failed_at: datetime | None = None


@immutable
class StoredSecret:
    """A signing secret as it is stored: sealed, with the hint that users may see."""

    version: int
    sealed: bytes
    hint: str
    created_at: datetime
    expires_at: datetime | None = None

    def is_live(self, now: datetime) -> bool:
        return self.expires_at is None or self.expires_at > now

    def expiring(self, at: datetime) -> "StoredSecret":
        return replace(self, expires_at=at)

    def __repr__(self) -> str:
        return f"StoredSecret(version={self.version}, {self.hint})"


@dataclass(frozen=True, slots=True)
class Keyring:
    """The live secrets of an endpoint: the current one, and during an overlap the previous one."""

    current: StoredSecret
    previous: StoredSecret | None = None

    @classmethod
    def at(cls, now: datetime, secrets: Sequence[StoredSecret]) -> "Keyring":
        newest_first = sorted(secrets, key=lambda secret: secret.version, reverse=True)
        live_before = [secret for secret in newest_first[1:] if secret.is_live(now)]
        return cls(newest_first[0], live_before[0] if live_before else None)

    @property
    def previous_expires_at(self) -> datetime | None:
        return self.previous.expires_at if self.previous else None

    def require_rotation_allowed(self) -> None:
        until = self.previous_expires_at
        if until is not None:
            raise RotationOverlapActive(
                f"The previous secret works until {to_text(until)}; rotate again after that, "
                "or end the overlap now.",
                availableAt=to_text(until),
            )

    def rotated(self, successor: StoredSecret, overlap: timedelta) -> "Keyring":
        return Keyring(successor, self.current.expiring(successor.created_at + overlap))


def subscription(events: Sequence[str] | None) -> tuple[str, ...]:
    """The chosen event types in catalogue order; the default ones if none is chosen."""
    if not events:
        return DEFAULT_SUBSCRIPTION
    errors = [
        FieldError(f"events[{position}]", *_complaint(name))
        for position, name in enumerate(events)
        if name not in SUBSCRIBABLE
    ]
    if errors:
        raise Invalid(*errors)
    return tuple(name for name in SUBSCRIBABLE if name in events)


def _complaint(name: str) -> tuple[str, str]:
    if name in BY_NAME:
        return "event_type_not_subscribable", f"{name} is sent on request; it has no subscription."
    return "unknown_event_type", f"Choose from {', '.join(SUBSCRIBABLE)}."
