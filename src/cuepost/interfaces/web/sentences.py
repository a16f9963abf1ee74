"""What happened to a delivery and what to do, in one plain sentence or two."""

from collections.abc import Mapping
from datetime import datetime

from cuepost.domain.attempt import Attempt, Outcome
from cuepost.domain.delivery import CancelReason, Delivery, DeliveryStatus
from cuepost.domain.endpoint import Health, HealthState
from cuepost.domain.event import SilenceReason
from cuepost.interfaces.web.rendering import millis, span

_S = DeliveryStatus
ADVICE: Mapping[int, str] = {
    400: "does your code expect another body?",
    401: "does a sign-in stand in front of the path?",
    403: "does a firewall or a sign-in stand in front of the path?",
    404: "is the path right?",
    405: "does the path accept POST?",
    408: "is your server overloaded?",
    410: "was the path taken away?",
    413: "does your server refuse bodies of this size?",
    415: "does your code accept application/json?",
    422: "does your code reject the body?",
    429: "does your server limit requests?",
}
REASONS: Mapping[CancelReason, str] = {
    CancelReason.ENDPOINT_DISABLED: "the endpoint was disabled",
    CancelReason.PROJECT_DELETED: "its project was deleted",
    CancelReason.PROJECT_ACCESS_EXPIRED: "its project's access window had ended",
    CancelReason.ACCESS_CLOSED: "the account's access to webhooks was closed",
}

SILENCES: Mapping[SilenceReason, str] = {
    SilenceReason.NOT_SUBSCRIBED: "no endpoint was subscribed to it when it happened. Add it to an "
    "endpoint's events, and the next one arrives.",
    SilenceReason.STANDALONE_TRANSCRIPT: "its project is a transcript, and those never notify.",
    SilenceReason.PROJECT_DELETED: "its project was deleted.",
    SilenceReason.PROJECT_ACCESS_EXPIRED: "its project's access window had ended. Give the "
    "project a later end of access, and the next one arrives.",
    SilenceReason.NO_EVENT_FOR_STATUS: "nobody is notified of this status.",
    SilenceReason.ILLEGAL_TRANSITION: "the project could not move there from where it was.",
    SilenceReason.PROJECT_NOT_FOUND: "there was no such project.",
    SilenceReason.INVALID: "the report was not valid.",
    SilenceReason.REPORT_ID_REUSED: "its report id was used before with other content.",
    SilenceReason.ACCOUNT_MOVED: "its account had moved to another database.",
    SilenceReason.ENDPOINT_DISABLED: "every endpoint that wanted it was disabled.",
    SilenceReason.ACCESS_CLOSED: "the account's access to webhooks was closed. What was held back "
    "can be retried now that it is open.",
}


def of_delivery(delivery: Delivery, last: Attempt | None) -> str:
    if delivery.status is _S.CANCELLED and delivery.reason is not None:
        return f"Cancelled, because {REASONS[delivery.reason]}. It can be retried by hand."
    if last is None or delivery.status is _S.PENDING:
        return "On its way: the next attempt begins at once."
    said = of_attempt(last)
    if delivery.status is _S.DELIVERED:
        return said
    if delivery.status is _S.FAILED:
        return f"{said} All attempts are used up; fix the cause, then retry."
    if delivery.status is _S.DELIVERING or delivery.next_attempt_at is None:
        return f"{said} Another attempt is under way."
    return said


def of_attempt(attempt: Attempt) -> str:
    status = attempt.response_status
    if attempt.outcome is Outcome.DELIVERED:
        return f"Your server acknowledged it with {status} in {millis(attempt.duration_ms)}."
    if attempt.outcome is Outcome.HTTP_ERROR and status is not None:
        server_side = "what does your server's log say for this event id?"
        return f"Your server answered {status}: {ADVICE.get(status, server_side)}"
    return f"{attempt.explanation.sentence} {attempt.explanation.fix}"


def of_health(health: Health, now: datetime) -> str:
    if health.state is HealthState.RETRYING:
        waiting = "delivery waits" if health.failing == 1 else "deliveries wait"
        return f"{health.failing} {waiting} for another attempt"
    if health.state is HealthState.FAILING and health.since is not None:
        return f"every attempt has failed for {span(now - health.since)}"
    if health.state is HealthState.DISABLED:
        return "nothing is sent"
    if health.state is HealthState.NEVER_DELIVERED:
        return "send a test event to see it work"
    return "the last delivery arrived"
