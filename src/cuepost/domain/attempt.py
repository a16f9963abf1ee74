"""One HTTP attempt and the closed list of ways it can end."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from cuepost.domain.delivery import Trigger
from cuepost.domain.immutable import immutable


class Outcome(StrEnum):
    DELIVERED = "delivered"
    HTTP_ERROR = "http_error"
    REDIRECT = "redirect"
    TIMEOUT = "timeout"
    CONNECT_ERROR = "connect_error"
    TLS_ERROR = "tls_error"
    BLOCKED_DESTINATION = "blocked_destination"
    PROTOCOL_ERROR = "protocol_error"
    INTERRUPTED = "interrupted"
    SUPERSEDED = "superseded"

    @property
    def counts(self) -> bool:
        """Whether an attempt with this outcome counts as one of the three of its budget."""
        return self not in _UNCOUNTED


_UNCOUNTED = (Outcome.INTERRUPTED, Outcome.SUPERSEDED)


class TlsFault(StrEnum):
    """Why an attempt ended with `tls_error`."""

    CERTIFICATE_EXPIRED = "certificate_expired"
    CERTIFICATE_NOT_YET_VALID = "certificate_not_yet_valid"
    CERTIFICATE_WRONG_HOST = "certificate_wrong_host"
    CERTIFICATE_UNKNOWN_AUTHORITY = "certificate_unknown_authority"
    TLS_TOO_OLD = "tls_too_old"
    TLS_HANDSHAKE_FAILED = "tls_handshake_failed"


def trigger_of(budget: Trigger, number: int) -> Trigger:
    """The trigger of an attempt in a budget with this trigger.

    A manual retry triggers only the first attempt of its budget; the others are automatic. All
    attempts of a test are tests.
    """
    if budget is Trigger.MANUAL and number > 1:
        return Trigger.AUTOMATIC
    return budget


def outcome_of(status: int | None) -> Outcome:
    """The outcome of a response with this status; only 2xx is an acknowledgement."""
    if status is None:
        return Outcome.PROTOCOL_ERROR
    if 200 <= status < 300:
        return Outcome.DELIVERED
    return Outcome.REDIRECT if 300 <= status < 400 else Outcome.HTTP_ERROR


@dataclass(frozen=True, slots=True)
class Explanation:
    sentence: str
    fix: str


EXPLANATIONS: Mapping[Outcome, Explanation] = {
    Outcome.DELIVERED: Explanation("The receiver acknowledged the event.", "No action is needed."),
    Outcome.HTTP_ERROR: Explanation(
        "The receiver answered with a status that is not 2xx.",
        "Look into the receiver's log for this event id, fix the cause and send it again.",
    ),
    Outcome.REDIRECT: Explanation(
        "The receiver answered with a redirect, and redirects are not followed.",
        "Register the final address as the endpoint's URL.",
    ),
    Outcome.TIMEOUT: Explanation(
        "The receiver did not acknowledge in time.",
        "Store the event, answer 2xx at once, and do the work afterwards.",
    ),
    Outcome.CONNECT_ERROR: Explanation(
        "The connection to the receiver could not be opened, or was closed before a response came.",
        "Check that the receiver is running, that its firewall allows the port, and its log.",
    ),
    Outcome.TLS_ERROR: Explanation(
        "The receiver's certificate or TLS configuration was not accepted.",
        "Serve a valid certificate for this host name, with its chain, over TLS 1.2 or newer.",
    ),
    Outcome.BLOCKED_DESTINATION: Explanation(
        "The receiver's host name does not resolve to an address that events may be sent to.",
        "Check the spelling of the name, and that its public DNS records have only public "
        "addresses; for a receiver on your own machine use 'cuepost listen'.",
    ),
    Outcome.PROTOCOL_ERROR: Explanation(
        "The receiver's answer was not valid HTTP.",
        "Check which program listens on that port, and any proxy in front of it.",
    ),
    Outcome.INTERRUPTED: Explanation(
        "The process that held this attempt ended; the request may have been sent.",
        "No action is needed: the event is sent again, and receivers deduplicate by its id.",
    ),
    Outcome.SUPERSEDED: Explanation(
        "The result of this attempt came after another process had taken over the delivery.",
        "No action is needed: it counts for no budget, and receivers deduplicate by event id.",
    ),
}

TLS_EXPLANATIONS: Mapping[TlsFault, Explanation] = {
    TlsFault.CERTIFICATE_EXPIRED: Explanation(
        "The receiver's certificate, or one in its chain, has expired.",
        "Renew the certificate, and make sure that the server has loaded the new one.",
    ),
    TlsFault.CERTIFICATE_NOT_YET_VALID: Explanation(
        "The receiver's certificate is not valid yet.",
        "Serve a certificate that is already valid; check the clock of the machine that made it.",
    ),
    TlsFault.CERTIFICATE_WRONG_HOST: Explanation(
        "The receiver's certificate is for another host name.",
        "Serve a certificate for this host name, or register the URL with a name that it covers.",
    ),
    TlsFault.CERTIFICATE_UNKNOWN_AUTHORITY: Explanation(
        "The receiver's certificate is from an unknown authority, or its chain is missing.",
        "Serve a certificate of a public authority with its whole chain, not a self-signed one.",
    ),
    TlsFault.TLS_TOO_OLD: Explanation(
        "The receiver supports only TLS versions that are too old.",
        "Enable TLS 1.2 or newer on the server, or on the proxy in front of it.",
    ),
    TlsFault.TLS_HANDSHAKE_FAILED: Explanation(
        "The TLS handshake with the receiver failed.",
        "Check that the port uses TLS and requires no client certificate; 'cuepost receiver check' "
        "with the endpoint's URL gives details.",
    ),
}


@immutable
class Timings:
    dns_ms: float | None = None
    connect_ms: float | None = None
    tls_ms: float | None = None
    first_byte_ms: float | None = None


@immutable
class Attempt:
    """An attempt that does not count has `budget` 0 and is numbered within it."""

    account_id: UUID
    delivery_id: UUID
    budget: int
    number: int
    trigger: Trigger
    started_at: datetime
    duration_ms: float
    timings: Timings
    signed_with: tuple[str, ...]
    request_headers: tuple[tuple[str, str], ...]
    response_status: int | None
    response_headers: tuple[tuple[str, str], ...]
    response_body: bytes
    response_truncated: bool
    outcome: Outcome
    tls_fault: TlsFault | None = None
    url: str | None = None

    @property
    def counts(self) -> bool:
        return self.outcome.counts

    @property
    def explanation(self) -> Explanation:
        if self.tls_fault is not None:
            return TLS_EXPLANATIONS[self.tls_fault]
        return EXPLANATIONS[self.outcome]


UNCOUNTED = 0
"""The budget of attempts that count for none."""


def interrupted(
    account_id: UUID, delivery_id: UUID, trigger: Trigger, noticed_at: datetime
) -> Attempt:
    """An attempt whose worker ended; whether the request was sent is not known."""
    return Attempt(
        account_id=account_id,
        delivery_id=delivery_id,
        budget=UNCOUNTED,
        number=0,
        trigger=trigger,
        started_at=noticed_at,
        duration_ms=0.0,
        timings=Timings(),
        signed_with=(),
        request_headers=(),
        response_status=None,
        response_headers=(),
        response_body=b"",
        response_truncated=False,
        outcome=Outcome.INTERRUPTED,
    )


def superseded(made: Attempt) -> Attempt:
    """An attempt whose result came after another worker had taken over the delivery."""
    return replace(made, budget=UNCOUNTED, number=0, outcome=Outcome.SUPERSEDED)


def last_of(attempts: Sequence[Attempt]) -> Attempt | None:
    """The newest attempt that counts, or the newest of all if none counts."""
    counted = [attempt for attempt in attempts if attempt.counts]
    return max(
        counted or attempts,
        key=lambda attempt: (attempt.started_at, attempt.budget, attempt.number),
        default=None,
    )
