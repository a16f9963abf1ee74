"""Results for agents: without secrets, and with text of receivers marked as untrusted."""

from typing import Annotated
from uuid import UUID

from msgspec import Meta, Raw

from cuepost.application.browse_history import DeliveryDetail as FoundDetail
from cuepost.application.explain_delivery import Diagnosis
from cuepost.application.finding import Finding as Found
from cuepost.application.finding import FindingCause
from cuepost.application.manage_webhooks import EndpointWithSecret
from cuepost.application.reveal_secret import RevealOffer
from cuepost.domain.attempt import Attempt as MadeAttempt
from cuepost.domain.attempt import Outcome
from cuepost.domain.delivery import DeliveryStatus, Trigger
from cuepost.domain.instants import to_text
from cuepost.domain.project import ProjectStatus
from cuepost.interfaces.mcp.untrusted import UntrustedAnswer
from cuepost.interfaces.wire_models.attempts import (
    NEWEST_ATTEMPTS,
    AttemptBudget,
    AttemptUrl,
    Explanation,
    Fix,
    Header,
    Milliseconds,
    Number,
    Timings,
    millis,
)
from cuepost.interfaces.wire_models.deliveries import Delivery
from cuepost.interfaces.wire_models.event_types import EventTypeName
from cuepost.interfaces.wire_models.shapes import Moment, ResponseModel, moment
from cuepost.interfaces.wire_models.webhooks import SecretHint, Webhook

EXCERPT = 500
SECRET_NOTICE = (
    "The signing secret is not shown here. Give the user this URL of the settings pages: after "
    "signing in, they can see the secret once and store it in the receiver."
)


class Done(ResponseModel, frozen=True):
    """The result of a deletion."""

    done: bool
    id: UUID


class Attempt(ResponseModel, frozen=True):
    number: Number
    budget: AttemptBudget
    url: AttemptUrl
    trigger: Trigger
    started_at: Moment
    duration_ms: Milliseconds
    timings: Timings
    signed_with: Annotated[list[str], Meta(description="Hints of the secrets that signed it.")]
    request_headers: list[Header]
    response_status: int | None
    outcome: Outcome
    explanation: Explanation
    fix: Fix
    untrusted_answer: UntrustedAnswer | None

    @classmethod
    def of(cls, attempt: MadeAttempt) -> "Attempt":
        explained = attempt.explanation
        return cls(
            number=attempt.number,
            budget=attempt.budget,
            url=attempt.url,
            trigger=attempt.trigger,
            started_at=to_text(attempt.started_at),
            duration_ms=millis(attempt.duration_ms),
            timings=Timings.of(attempt.timings),
            signed_with=list(attempt.signed_with),
            request_headers=Header.all(attempt.request_headers),
            response_status=attempt.response_status,
            outcome=attempt.outcome,
            explanation=explained.sentence,
            fix=explained.fix,
            untrusted_answer=UntrustedAnswer.of(attempt),
        )


class DeliveryDetail(ResponseModel, frozen=True):
    """A delivery with its event and its attempts."""

    delivery: Delivery
    event: Raw
    attempts: Annotated[list[Attempt], NEWEST_ATTEMPTS]

    @classmethod
    def of(cls, detail: FoundDetail) -> "DeliveryDetail":
        return cls(
            delivery=Delivery.of(detail.delivery, detail.last_attempt),
            event=Raw(detail.event.body),
            attempts=[Attempt.of(attempt) for attempt in detail.attempts],
        )


class NewSecret(ResponseModel, frozen=True):
    """The endpoint with a new secret, which the user gets at `revealUrl`."""

    webhook: Webhook
    secret_hint: SecretHint
    reveal_url: Annotated[str, Meta(description="Shows the secret once, to a signed-in user.")]
    reveal_expires_at: Moment
    notice: str

    @classmethod
    def of(cls, with_secret: EndpointWithSecret, offer: RevealOffer) -> "NewSecret":
        return cls(
            webhook=Webhook.of(with_secret.view),
            secret_hint=with_secret.secret.hint,
            reveal_url=offer.url,
            reveal_expires_at=to_text(offer.expires_at),
            notice=SECRET_NOTICE,
        )


class Finding(ResponseModel, frozen=True):
    cause: FindingCause
    explanation: Explanation
    fix: Fix
    webhook_id: UUID | None
    delivery_id: UUID | None
    delivery_status: DeliveryStatus | None
    attempt_count: int
    next_attempt_at: Moment | None
    response_status: int | None
    untrusted_answer: UntrustedAnswer | None

    @classmethod
    def of(cls, found: Found) -> "Finding":
        delivery, attempt = found.delivery, found.attempt
        return cls(
            cause=found.cause,
            explanation=found.sentence,
            fix=found.fix,
            webhook_id=found.webhook_id,
            delivery_id=delivery.id if delivery else None,
            delivery_status=delivery.status if delivery else None,
            attempt_count=delivery.attempt_count if delivery else 0,
            next_attempt_at=moment(delivery.next_attempt_at) if delivery else None,
            response_status=attempt.response_status if attempt else None,
            untrusted_answer=UntrustedAnswer.of(attempt, EXCERPT) if attempt else None,
        )


class DeliveryExplanation(ResponseModel, frozen=True):
    """`findings` has the most likely cause first; `arrived` means that nothing has to be fixed."""

    arrived: bool
    cause: FindingCause
    explanation: Explanation
    fix: Fix
    project_id: UUID | None
    project_status: ProjectStatus | None
    event_id: UUID | None
    event_type: EventTypeName | None
    findings: list[Finding]

    @classmethod
    def of(cls, diagnosis: Diagnosis) -> "DeliveryExplanation":
        first, project, event = diagnosis.findings[0], diagnosis.project, diagnosis.event
        return cls(
            arrived=diagnosis.arrived,
            cause=first.cause,
            explanation=first.sentence,
            fix=first.fix,
            project_id=project.id if project else None,
            project_status=project.status if project else None,
            event_id=event.id if event else None,
            event_type=event.type if event else None,
            findings=[Finding.of(each) for each in diagnosis.findings],
        )
