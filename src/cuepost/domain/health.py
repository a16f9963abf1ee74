"""How an endpoint is doing: the only definition, for pages, REST, MCP and alerts.

What an endpoint remembers changes with each attempt. It starts failing when a delivery has failed
and nothing was acknowledged while that delivery was tried, or when most recent deliveries failed.
It has recovered when an attempt was acknowledged and none has failed for a while: an endpoint that
answers only now and then does not go back and forth.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from cuepost.domain.endpoint import Endpoint

RECENT = timedelta(hours=1)
"""Deliveries that began within it are judged by how they ended."""
QUIET = timedelta(minutes=1)
"""Without a failed attempt for this long, an endpoint that acknowledges has recovered."""
MOSTLY = 0.5
"""From this share of failed deliveries on, an endpoint is failing although some arrive."""


class HealthState(StrEnum):
    HEALTHY = "healthy"
    DEGRADED = "degraded"
    FAILING = "failing"
    UNKNOWN = "unknown"
    DISABLED = "disabled"


@dataclass(frozen=True, slots=True)
class Recent:
    """How the recent deliveries to an endpoint ended."""

    delivered: int = 0
    failed: int = 0

    @property
    def mostly_failed(self) -> bool:
        return self.failed >= (self.delivered + self.failed) * MOSTLY and self.failed > 0

    def plus(self, *, delivered: int, failed: int) -> "Recent":
        return Recent(self.delivered + delivered, self.failed + failed)


@dataclass(frozen=True, slots=True)
class Condition:
    """What an endpoint remembers of its attempts.

    `troubled_since` is the first failed attempt since the last acknowledged one. `failing_since` is
    set from the start of a failure until the endpoint has recovered.
    """

    last_delivered_at: datetime | None = None
    last_failed_at: datetime | None = None
    troubled_since: datetime | None = None
    failing_since: datetime | None = None

    @classmethod
    def of(cls, endpoint: Endpoint) -> "Condition":
        return cls(
            endpoint.last_delivered_at,
            endpoint.last_failed_at,
            endpoint.troubled_since,
            endpoint.failing_since,
        )

    def acknowledged(self, now: datetime) -> "Condition":
        after = replace(self, last_delivered_at=now, troubled_since=None)
        return replace(after, failing_since=None) if after.has_recovered(now) else after

    def attempt_failed(self, now: datetime) -> "Condition":
        return replace(self, last_failed_at=now, troubled_since=self.troubled_since or now)

    def delivery_failed(self, began_at: datetime, recent: Recent, now: datetime) -> "Condition":
        """After its last attempt; `recent` includes it."""
        arrived = self.last_delivered_at
        nothing_arrived = arrived is None or arrived < began_at
        after = self.attempt_failed(now)
        if nothing_arrived or recent.mostly_failed:
            return replace(after, failing_since=self.failing_since or now)
        return after

    def has_recovered(self, now: datetime) -> bool:
        """Whether it can no longer be called failing."""
        is_quiet = self.last_failed_at is None or self.last_failed_at + QUIET <= now
        return self.failing_since is not None and self.troubled_since is None and is_quiet


@dataclass(frozen=True, slots=True)
class Health:
    """`failing` deliveries wait for another attempt; of the recent ones `failed` have failed."""

    state: HealthState
    since: datetime | None
    last_delivered_at: datetime | None
    failing: int
    failed: int = 0


def health(endpoint: Endpoint, retrying: int, recent_failed: int = 0) -> Health:
    """`retrying` deliveries wait for another attempt."""
    state, since = _state(endpoint, retrying + recent_failed)
    return Health(state, since, endpoint.last_delivered_at, retrying, recent_failed)


def _state(endpoint: Endpoint, unsuccessful: int) -> tuple[HealthState, datetime | None]:
    if not endpoint.enabled:
        return HealthState.DISABLED, endpoint.updated_at
    failing_since, troubled_since = endpoint.failing_since, endpoint.troubled_since
    if failing_since is not None and troubled_since is not None:
        return HealthState.FAILING, failing_since
    if failing_since is not None or troubled_since is not None or unsuccessful:
        return HealthState.DEGRADED, failing_since or troubled_since
    if endpoint.last_delivered_at is None:
        return HealthState.UNKNOWN, endpoint.created_at
    return HealthState.HEALTHY, endpoint.last_delivered_at
