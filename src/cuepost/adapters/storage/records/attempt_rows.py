"""Rows of attempts: in `attempts`, or for the last attempt in the row of the ended delivery."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from cuepost.adapters.storage.records.delivery_rows import Ended
from cuepost.adapters.storage.row_writes import inserted
from cuepost.domain.attempt import Attempt, Outcome, Timings, TlsFault, trigger_of
from cuepost.domain.delivery import Trigger


class Row(NamedTuple):
    """An attempt; in the row of an ended delivery, `trigger` is that of the delivery."""

    delivery_id: UUID
    budget: int
    trigger: Trigger
    number: int
    started_at: datetime
    duration_ms: float
    dns_ms: float | None
    connect_ms: float | None
    tls_ms: float | None
    first_byte_ms: float | None
    signed_with: str
    request_headers: bytes
    response_status: int | None
    response_headers: bytes
    response_body: bytes
    response_truncated: bool
    outcome: Outcome
    tls_fault: TlsFault | None
    url: str | None

    def attempt(self, account_id: UUID) -> Attempt:
        return Attempt(
            account_id=account_id,
            delivery_id=self.delivery_id,
            budget=self.budget,
            number=self.number,
            trigger=self.trigger,
            started_at=self.started_at,
            duration_ms=self.duration_ms,
            timings=Timings(self.dns_ms, self.connect_ms, self.tls_ms, self.first_byte_ms),
            # Hints from before revision 0006 end with base64 padding.
            signed_with=tuple(self.signed_with.replace("=", "").split()),
            request_headers=_headers(self.request_headers),
            response_status=self.response_status,
            response_headers=_headers(self.response_headers),
            response_body=self.response_body,
            response_truncated=bool(self.response_truncated),
            outcome=self.outcome,
            tls_fault=self.tls_fault,
            url=self.url,
        )


COLUMNS = Row._fields[3:]
ADD = inserted("attempts", "account", "delivery_id", "budget", "trigger", "held_by", *COLUMNS)
_ENCODE = msgspec.json.Encoder().encode


def beside(row: Sequence[Any]) -> Row:
    """The attempt in the columns of an ended delivery."""
    found = Row._make(row)
    return found._replace(trigger=trigger_of(found.trigger, found.number))


def values_of(attempt: Attempt) -> tuple[Any, ...]:
    """The values of the columns that both tables have, in the order of `COLUMNS`."""
    timings = attempt.timings
    return (
        attempt.number,
        attempt.started_at,
        attempt.duration_ms,
        timings.dns_ms,
        timings.connect_ms,
        timings.tls_ms,
        timings.first_byte_ms,
        " ".join(attempt.signed_with),
        _ENCODE(attempt.request_headers),
        attempt.response_status,
        _ENCODE(attempt.response_headers),
        attempt.response_body,
        attempt.response_truncated,
        attempt.outcome,
        attempt.tls_fault,
        attempt.url,
    )


def own_row(
    attempt: Attempt, account: int, *, number: int | None = None, held_by: UUID | None = None
) -> tuple[Any, ...]:
    """For `ADD`; `number` overrides the attempt's own."""
    own, *others = values_of(attempt)
    return (
        account,
        attempt.delivery_id,
        attempt.budget,
        attempt.trigger,
        held_by,
        own if number is None else number,
        *others,
    )


def from_ended(account: int, ended: Ended, values: Sequence[Any]) -> dict[str, Any]:
    """The attempt of a delivery that becomes live again; `values` are those of `COLUMNS`."""
    attempt = dict(zip(COLUMNS, values, strict=True))
    return attempt | {
        "account": account,
        "delivery_id": ended.id,
        "budget": ended.budget,
        "trigger": trigger_of(ended.trigger, attempt["number"]),
        "held_by": None,
    }


def _headers(stored: bytes) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in msgspec.json.decode(stored))
