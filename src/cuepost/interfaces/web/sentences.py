"""Sentences that say what happened to a delivery and what to do."""

from collections.abc import Mapping
from datetime import datetime

from cuepost.domain.attempt import Attempt, Outcome
from cuepost.domain.delivery import CancelReason, Delivery, DeliveryStatus
from cuepost.domain.event import SilenceReason
from cuepost.domain.health import Health, HealthState
from cuepost.interfaces.web.rendering import millis
from cuepost.interfaces.web.times import span

_S = DeliveryStatus
ADVICE: Mapping[int, str] = {
    400: "does your code expect another body?",
    401: "does the path require a sign-in?",
    403: "does a firewall or a sign-in block the path?",
    404: "is the path right?",
    405: "does the path accept POST?",
    408: "is your server overloaded?",
    410: "was the path removed?",
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
    "endpoint's events, and the next one is sent.",
    SilenceReason.STANDALONE_TRANSCRIPT: "transcripts send no webhooks.",
    SilenceReason.PROJECT_DELETED: "its project was deleted.",
    SilenceReason.PROJECT_ACCESS_EXPIRED: "its project's access window had ended. Extend "
    "its access, and the next event is sent.",
    SilenceReason.NO_EVENT_FOR_STATUS: "no event exists for this status.",
    SilenceReason.ILLEGAL_TRANSITION: "the project could not change to this status.",
    SilenceReason.PROJECT_NOT_FOUND: "there was no such project.",
    SilenceReason.INVALID: "the report was not valid.",
    SilenceReason.REPORT_ID_REUSED: "its report id was used before with other content.",
    SilenceReason.ACCOUNT_MOVED: "its account had moved to another database.",
    SilenceReason.ENDPOINT_DISABLED: "every subscribed endpoint was disabled.",
    SilenceReason.ACCESS_CLOSED: "the account's access to webhooks was closed. Its deliveries "
    "can be retried now that access is open.",
}


def of_delivery(delivery: Delivery, last: Attempt | None) -> str:
    if delivery.status is _S.CANCELLED and delivery.reason is not None:
        return f"Cancelled, because {REASONS[delivery.reason]}. You can retry it."
    if last is None or delivery.status is _S.PENDING:
        return "Waiting to be sent; the next attempt starts immediately."
    summary = of_attempt(last)
    if delivery.status is _S.DELIVERED:
        return summary
    if delivery.status is _S.FAILED:
        return f"{summary} No attempts are left; fix the cause, then retry."
    if delivery.status is _S.DELIVERING or delivery.next_attempt_at is None:
        return f"{summary} Another attempt is in progress."
    return summary


def of_attempt(attempt: Attempt) -> str:
    status = attempt.response_status
    if attempt.outcome is Outcome.DELIVERED:
        return f"Your server acknowledged it with {status} in {millis(attempt.duration_ms)}."
    if attempt.outcome is Outcome.HTTP_ERROR and status is not None:
        server_side = "what does your server's log say for this event id?"
        return f"Your server answered {status}: {ADVICE.get(status, server_side)}"
    return f"{attempt.explanation.sentence} {attempt.explanation.fix}"


def of_health(health: Health, now: datetime) -> str:
    if health.state is HealthState.DEGRADED:
        return _why_degraded(health, now)
    if health.state is HealthState.FAILING and health.since is not None:
        return f"deliveries have been failing for {span(now - health.since)}"
    if health.state is HealthState.DISABLED:
        return "nothing is sent"
    if health.state is HealthState.UNKNOWN:
        return "send a test event to see it work"
    return "the last delivery arrived"


def _why_degraded(health: Health, now: datetime) -> str:
    if health.failing:
        waiting = "delivery waits" if health.failing == 1 else "deliveries wait"
        return f"{health.failing} {waiting} for another attempt"
    if health.failed:
        failed = "delivery" if health.failed == 1 else "deliveries"
        return f"{health.failed} {failed} failed in the last hour"
    assert health.since is not None
    return f"not every attempt of the last {span(now - health.since)} was acknowledged"
