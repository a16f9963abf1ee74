"""Explains one delivery: by its last attempt, or by what stopped it."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from http import HTTPStatus

from cuepost.application.finding import Finding, FindingCause
from cuepost.application.silence_causes import access_expired, project_deleted
from cuepost.domain.attempt import Attempt, Outcome
from cuepost.domain.delivery import CancelReason, Delivery, DeliveryStatus
from cuepost.domain.endpoint import Endpoint
from cuepost.domain.instants import to_text

_BY_STATUS: Mapping[int, tuple[FindingCause, str]] = {
    401: (
        FindingCause.RECEIVER_REFUSED,
        "Accept webhook requests without a login; verify their signature instead.",
    ),
    403: (
        FindingCause.RECEIVER_REFUSED,
        "Check what refuses it: the signature check, a firewall, bot or CSRF protection.",
    ),
    404: (
        FindingCause.WRONG_PATH,
        "Check the path of the endpoint's URL against the receiver's route.",
    ),
    405: (FindingCause.METHOD_NOT_ACCEPTED, "Let the receiver's route accept POST."),
    410: (
        FindingCause.WRONG_PATH,
        "The receiver says that it is gone for good; register its new URL.",
    ),
    429: (
        FindingCause.RECEIVER_BUSY,
        "Let the receiver store events at once and process them later.",
    ),
}
_OF_SERVER = (
    FindingCause.RECEIVER_ERROR,
    "Look for this event id in the receiver's log, and fix the error there.",
)
_OTHER = (FindingCause.HTTP_ERROR, "Look for this event id in the receiver's log.")

# For attempts from before the TLS fault was stored; the command finds it out.
_TLS_FIX = (
    "Run 'cuepost receiver check {url}': it shows whether the certificate has expired, is for "
    "another host name, is from an unknown authority, or lacks its chain. TLS must be 1.2 or newer."
)


def of_delivery(
    delivery: Delivery, endpoint: Endpoint, attempt: Attempt | None, now: datetime
) -> Finding:
    if delivery.status is DeliveryStatus.DELIVERED:
        found = _delivered(delivery, endpoint, attempt)
    elif delivery.status is DeliveryStatus.CANCELLED:
        found = _cancelled(delivery, endpoint)
    elif attempt is None or attempt.budget < delivery.budget:
        found = _waiting(delivery, endpoint, attempt, now)
    else:
        found = _tried(delivery, endpoint, attempt)
    return replace(found, webhook_id=endpoint.id, delivery=delivery, attempt=attempt)


def _delivered(delivery: Delivery, endpoint: Endpoint, attempt: Attempt | None) -> Finding:
    when = to_text(delivery.delivered_at or delivery.created_at)
    answer = f" and answered {attempt.response_status}" if attempt else ""
    return Finding(
        FindingCause.DELIVERED,
        f"It was delivered: {endpoint.url} accepted it at {when}{answer}.",
        "Check what the receiver did with this event id afterwards; it can be sent again.",
    )


def _cancelled(delivery: Delivery, endpoint: Endpoint) -> Finding:
    if delivery.reason is CancelReason.PROJECT_DELETED:
        return project_deleted()
    if delivery.reason is CancelReason.PROJECT_ACCESS_EXPIRED:
        return access_expired()
    if delivery.reason is CancelReason.ACCESS_CLOSED:
        return Finding(
            FindingCause.ACCESS_WAS_CLOSED,
            "The account's access to webhooks was closed when this was to be sent. It is open now.",
            f"{'Send' if endpoint.enabled else 'Enable the endpoint, then send'} the delivery "
            "again, alone or with a bulk retry.",
        )
    if endpoint.enabled:
        return Finding(
            FindingCause.ENDPOINT_DISABLED,
            f"The endpoint {endpoint.url} was disabled when this was to be sent. It is enabled "
            "now.",
            "Send the delivery again.",
        )
    return Finding(
        FindingCause.ENDPOINT_DISABLED,
        f"The endpoint {endpoint.url} is disabled, so nothing is sent to it.",
        "Enable the endpoint, then send the delivery again.",
    )


def _waiting(
    delivery: Delivery, endpoint: Endpoint, attempt: Attempt | None, now: datetime
) -> Finding:
    due = delivery.next_attempt_at or delivery.created_at
    uncounted = attempt is not None and not attempt.counts
    before = f"{attempt.explanation.sentence} " if attempt and uncounted else ""
    return Finding(
        FindingCause.NOT_SENT_YET,
        f"{before}{_delivered_before(delivery)}It has waited to be sent to {endpoint.url} since "
        f"{to_text(due)}, for {_seconds(due, now)} seconds.",
        "Wait a moment. If this does not change, ask the operator whether a worker is running.",
    )


def _tried(delivery: Delivery, endpoint: Endpoint, attempt: Attempt) -> Finding:
    cause, sentence, fix = _of_attempt(attempt, endpoint)
    if delivery.status is DeliveryStatus.FAILED:
        fix = f"{fix} Then send the delivery again."
    said = f"{_delivered_before(delivery)}{sentence} {_what_follows(delivery)}"
    return Finding(cause, said, fix)


def _delivered_before(delivery: Delivery) -> str:
    if delivery.delivered_at is None:
        return ""
    return f"It was delivered at {to_text(delivery.delivered_at)} and then sent again. "


def _of_attempt(attempt: Attempt, endpoint: Endpoint) -> tuple[FindingCause, str, str]:
    status, outcome = attempt.response_status, attempt.outcome
    if outcome is Outcome.HTTP_ERROR and status is not None:
        cause, fix = _BY_STATUS.get(status) or (_OF_SERVER if status >= 500 else _OTHER)
        return cause, f"{endpoint.url} answered {status}{_phrase(status)}.", fix
    cause, fix = FindingCause(attempt.tls_fault or outcome), attempt.explanation.fix
    if cause is FindingCause.TLS_ERROR:
        fix = _TLS_FIX.format(url=endpoint.url)
    return cause, f"{endpoint.url}: {attempt.explanation.sentence}", fix


def _what_follows(delivery: Delivery) -> str:
    if delivery.status is DeliveryStatus.RETRYING and delivery.next_attempt_at is not None:
        return f"It will be tried again at {to_text(delivery.next_attempt_at)}."
    if delivery.status is DeliveryStatus.FAILED:
        times = "once" if delivery.attempt_count == 1 else f"{delivery.attempt_count} times"
        return f"It was tried {times}, and is not retried automatically."
    return "Another attempt is under way."


def _phrase(status: int) -> str:
    try:
        return f" ({HTTPStatus(status).phrase})"
    except ValueError:
        return ""


def _seconds(since: datetime, now: datetime) -> int:
    return max(0, int((now - since).total_seconds()))
