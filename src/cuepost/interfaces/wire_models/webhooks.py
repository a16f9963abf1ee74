"""Webhook endpoints with their secret hints and health."""

from typing import Annotated
from uuid import UUID

from msgspec import UNSET, Meta, UnsetType

from cuepost.application.manage_webhooks import EndpointChange, EndpointView, EndpointWithSecret
from cuepost.domain.event_catalog import DEFAULT_SUBSCRIPTION, SUBSCRIBABLE
from cuepost.domain.health import Health, HealthState
from cuepost.domain.instants import to_text
from cuepost.interfaces.wire_models.shapes import (
    LINE,
    TEXT,
    Moment,
    Request,
    ResponseModel,
    given,
    moment,
)

# The domain validates URLs and event types, because it can explain what is wrong with them.
ReceiverUrl = Annotated[
    str,
    Meta(
        max_length=8192,
        description="Public, HTTPS, port 443; no credentials and no fragment.",
        examples=["https://hooks.example.com/cuepost"],
    ),
]
EventName = Annotated[
    str,
    Meta(
        title="SubscribableEventType",
        max_length=100,
        pattern=LINE,
        extra_json_schema={"enum": list(SUBSCRIBABLE)},
    ),
]
EventNames = Annotated[
    list[EventName],
    Meta(
        max_length=50,
        description=f"Default: {' and '.join(DEFAULT_SUBSCRIPTION)}.",
    ),
]
LONGEST_DESCRIPTION = 500
Description = Annotated[str, Meta(max_length=LONGEST_DESCRIPTION, pattern=TEXT)]
Secret = Annotated[
    str,
    Meta(description="The signing secret. It is shown only once; store it safely."),
]
SecretHint = Annotated[
    str,
    Meta(
        description="The last characters of the secret, to distinguish secrets.",
        examples=["whsec_…vx9Q"],
    ),
]


class CreateWebhook(Request, frozen=True):
    url: ReceiverUrl
    events: EventNames | UnsetType | None = UNSET
    description: Description | UnsetType | None = UNSET


class UpdateWebhook(Request, frozen=True):
    url: ReceiverUrl | UnsetType = UNSET
    events: EventNames | UnsetType = UNSET
    description: Description | UnsetType = UNSET
    enabled: bool | UnsetType = UNSET

    def change(self) -> EndpointChange:
        return EndpointChange(
            url=given(self.url),
            events=given(self.events),
            description=given(self.description),
            enabled=given(self.enabled),
        )


class WebhookHealth(ResponseModel, frozen=True):
    """`failing` is the number of deliveries that wait for a retry.

    `failed` is the number of those created within the last hour that failed.
    """

    state: HealthState
    since: Moment | None
    last_delivered_at: Moment | None
    failing: int
    failed: int

    @classmethod
    def of(cls, health: Health) -> "WebhookHealth":
        return cls(
            state=health.state,
            since=moment(health.since),
            last_delivered_at=moment(health.last_delivered_at),
            failing=health.failing,
            failed=health.failed,
        )


class Webhook(ResponseModel, frozen=True):
    id: UUID
    url: str
    events: list[str]
    description: str
    enabled: bool
    secret_hint: SecretHint
    previous_secret_expires_at: Moment | None
    created_at: Moment
    updated_at: Moment
    health: WebhookHealth

    @classmethod
    def of(cls, view: EndpointView) -> "Webhook":
        endpoint = view.endpoint
        return cls(
            id=endpoint.id,
            url=endpoint.url,
            events=list(endpoint.events),
            description=endpoint.description,
            enabled=endpoint.enabled,
            secret_hint=view.keyring.current.hint,
            previous_secret_expires_at=moment(view.keyring.previous_expires_at),
            created_at=to_text(endpoint.created_at),
            updated_at=to_text(endpoint.updated_at),
            health=WebhookHealth.of(view.health),
        )


class WebhookList(ResponseModel, frozen=True):
    data: list[Webhook]
    next_cursor: str | None


class CreatedWebhook(ResponseModel, frozen=True):
    """The endpoint with its secret, which is shown only once."""

    id: UUID
    url: str
    events: list[str]
    description: str
    enabled: bool
    secret: Secret
    secret_hint: SecretHint
    previous_secret_expires_at: Moment | None
    created_at: Moment
    updated_at: Moment
    health: WebhookHealth

    @classmethod
    def of(cls, with_secret: EndpointWithSecret) -> "CreatedWebhook":
        shown = Webhook.of(with_secret.view)
        return cls(
            secret=with_secret.secret.reveal(),
            **{name: getattr(shown, name) for name in shown.__struct_fields__},
        )

    def __repr__(self) -> str:
        return f"CreatedWebhook({self.id}, {self.secret_hint})"


class RotatedSecret(ResponseModel, frozen=True):
    """The new secret; both secrets sign until the previous one expires."""

    secret: Secret
    secret_hint: SecretHint
    previous_secret_expires_at: Moment | None

    @classmethod
    def of(cls, with_secret: EndpointWithSecret) -> "RotatedSecret":
        return cls(
            secret=with_secret.secret.reveal(),
            secret_hint=with_secret.secret.hint,
            previous_secret_expires_at=moment(with_secret.view.keyring.previous_expires_at),
        )

    def __repr__(self) -> str:
        return f"RotatedSecret({self.secret_hint})"
