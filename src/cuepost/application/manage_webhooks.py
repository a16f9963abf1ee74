"""Webhook endpoints: create, read, change, rotate, test, delete."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from cuepost.application.access import require_open
from cuepost.application.audit_trail import AuditTrail
from cuepost.domain.access import Caller, Scope
from cuepost.domain.audit import Action
from cuepost.domain.delivery import CancelReason, Delivery, Trigger
from cuepost.domain.delivery_counts import FINE_MINUTES, HOUR_MINUTES
from cuepost.domain.egress_policy import EgressPolicy
from cuepost.domain.endpoint import Endpoint, Keyring, StoredSecret, subscription
from cuepost.domain.errors import (
    EndpointDisabled,
    EndpointLimitReached,
    FieldError,
    Invalid,
    NotFound,
)
from cuepost.domain.event import Event, Subscriber, deliveries_of, event_body
from cuepost.domain.event_catalog import TEST_EVENT, webhook_test_data
from cuepost.domain.health import RECENT, Health, health
from cuepost.domain.receiver_url import ReceiverUrlRefused, parse_receiver_url
from cuepost.domain.signing import KEY_BYTES, SigningSecret
from cuepost.domain.version import Expected, endpoint_version, require_version
from cuepost.ports.history import Bars
from cuepost.ports.records import Page
from cuepost.ports.store import Transaction
from cuepost.ports.system import Clock, Entropy, IdSource, SecretBox


@dataclass(frozen=True, slots=True)
class EndpointView:
    """An endpoint as it is shown: with the hints of its secrets and its health, without secrets."""

    endpoint: Endpoint
    keyring: Keyring
    health: Health

    @property
    def version(self) -> str:
        return endpoint_version(self.endpoint, self.keyring)


@dataclass(frozen=True, slots=True)
class EndpointWithSecret:
    """For the only response that contains the secret."""

    view: EndpointView
    secret: SigningSecret


@dataclass(frozen=True, slots=True)
class EndpointChange:
    """None means unchanged."""

    url: str | None = None
    events: Sequence[str] | None = None
    description: str | None = None
    enabled: bool | None = None


@dataclass(frozen=True, slots=True)
class ManageWebhooks:
    clock: Clock
    ids: IdSource
    entropy: Entropy
    box: SecretBox
    audit: AuditTrail
    policy: EgressPolicy
    rotation_overlap: timedelta
    endpoint_limit: int

    async def create(
        self,
        transaction: Transaction,
        caller: Caller,
        url: str,
        events: Sequence[str] | None,
        description: str,
    ) -> EndpointWithSecret:
        account_id = caller.require_webhooks(Scope.WEBHOOKS_MANAGE)
        now = self.clock.now()
        endpoint = Endpoint(
            account_id=account_id,
            id=self.ids(now),
            url=await self._receiver(transaction, account_id, url),
            events=subscription(events),
            description=description,
            enabled=True,
            created_at=now,
            updated_at=now,
        )
        # Locked, so that concurrent requests cannot exceed the limit.
        await transaction.accounts.lock(account_id)
        if await transaction.endpoints.count(account_id) >= self.endpoint_limit:
            raise EndpointLimitReached(
                f"The account has {self.endpoint_limit} endpoints already; delete one first."
            )
        secret, stored = self._new_secret(endpoint.id, 1, now)
        await transaction.endpoints.add(endpoint, stored)
        await self.audit.note(
            transaction, caller, Action.WEBHOOK_CREATED, account_id, endpoint.id, url=endpoint.url
        )
        return EndpointWithSecret(
            EndpointView(endpoint, Keyring(stored), health(endpoint, 0)), secret
        )

    async def page(
        self, transaction: Transaction, caller: Caller, page: Page
    ) -> list[EndpointView]:
        account_id = caller.require_webhooks(Scope.WEBHOOKS_READ)
        endpoints = await transaction.endpoints.page(account_id, page)
        return await self._views(transaction, account_id, endpoints)

    async def get(self, transaction: Transaction, caller: Caller, webhook_id: UUID) -> EndpointView:
        account_id = caller.require_webhooks(Scope.WEBHOOKS_READ)
        endpoint = await transaction.endpoints.get(account_id, webhook_id)
        if endpoint is None:
            raise NotFound
        return await self._view(transaction, endpoint)

    async def change(
        self,
        transaction: Transaction,
        caller: Caller,
        webhook_id: UUID,
        wanted: EndpointChange,
        expected: Expected = None,
    ) -> EndpointView:
        before = await self._locked(transaction, caller, webhook_id, expected)
        url = before.url
        if wanted.url is not None:
            url = await self._receiver(transaction, before.account_id, wanted.url)
        after = replace(
            before,
            url=url,
            events=before.events if wanted.events is None else subscription(wanted.events),
            description=before.description if wanted.description is None else wanted.description,
            enabled=before.enabled if wanted.enabled is None else wanted.enabled,
        )
        if after != before:
            after = replace(after, updated_at=self.clock.now())
            await transaction.endpoints.save(after)
            await self._follow_up(transaction, caller, before, after)
        return await self._view(transaction, after)

    async def delete(
        self, transaction: Transaction, caller: Caller, webhook_id: UUID, expected: Expected = None
    ) -> None:
        endpoint = await self._locked(transaction, caller, webhook_id, expected)
        await transaction.endpoints.delete(endpoint.account_id, webhook_id, self.clock.now())
        await self.audit.note(
            transaction,
            caller,
            Action.WEBHOOK_DELETED,
            endpoint.account_id,
            webhook_id,
            url=endpoint.url,
        )

    async def rotate_secret(
        self, transaction: Transaction, caller: Caller, webhook_id: UUID, expected: Expected = None
    ) -> EndpointWithSecret:
        endpoint = await self._locked(transaction, caller, webhook_id, expected)
        now = self.clock.now()
        keyring = await self._keyring(transaction, endpoint)
        keyring.require_rotation_allowed()
        secret, stored = self._new_secret(webhook_id, keyring.current.version + 1, now)
        rotated = keyring.rotated(stored, self.rotation_overlap)
        for each in (rotated.previous, rotated.current):
            if each is not None:
                await transaction.endpoints.put_secret(endpoint.account_id, webhook_id, each)
        await self.audit.note(
            transaction, caller, Action.SECRET_ROTATED, endpoint.account_id, webhook_id
        )
        return EndpointWithSecret(await self._view(transaction, endpoint), secret)

    async def end_overlap(
        self, transaction: Transaction, caller: Caller, webhook_id: UUID, expected: Expected = None
    ) -> EndpointView:
        """Stop signing with the previous secret; without an overlap nothing changes."""
        endpoint = await self._locked(transaction, caller, webhook_id, expected)
        keyring = await self._keyring(transaction, endpoint)
        if keyring.previous is not None:
            await transaction.endpoints.drop_secret(
                endpoint.account_id, webhook_id, keyring.previous.version
            )
            await self.audit.note(
                transaction, caller, Action.OVERLAP_ENDED, endpoint.account_id, webhook_id
            )
        return await self._view(transaction, endpoint)

    async def send_test(
        self, transaction: Transaction, caller: Caller, webhook_id: UUID
    ) -> Delivery:
        """Queue a test event for this endpoint only."""
        await require_open(transaction, caller.require_webhooks(Scope.WEBHOOKS_MANAGE))
        endpoint = await self._locked(transaction, caller, webhook_id)
        if not endpoint.enabled:
            raise EndpointDisabled
        await self._receiver(transaction, endpoint.account_id, endpoint.url)
        now = self.clock.now()
        event_id = self.ids(now)
        event = Event(
            account_id=endpoint.account_id,
            id=event_id,
            type=TEST_EVENT,
            created_at=now,
            project_id=None,
            occurred_at=now,
            body=event_body(event_id, TEST_EVENT, now, webhook_test_data(webhook_id)),
        )
        to = Subscriber(webhook_id, frozenset({TEST_EVENT}))
        [delivery] = deliveries_of(event, [to], self.ids, Trigger.TEST)
        await transaction.events.add([event])
        await transaction.deliveries.add([delivery])
        await self.audit.note(
            transaction, caller, Action.TEST_SENT, endpoint.account_id, webhook_id
        )
        return delivery

    async def _follow_up(
        self, transaction: Transaction, caller: Caller, before: Endpoint, after: Endpoint
    ) -> None:
        action = Action.WEBHOOK_CHANGED
        if before.enabled != after.enabled:
            action = Action.WEBHOOK_ENABLED if after.enabled else Action.WEBHOOK_DISABLED
        if before.enabled and not after.enabled:
            await transaction.deliveries.stop_endpoint(
                after.account_id, after.id, CancelReason.ENDPOINT_DISABLED, after.updated_at
            )
        await self.audit.note(
            transaction, caller, action, after.account_id, after.id, url=after.url
        )

    async def _locked(
        self, transaction: Transaction, caller: Caller, webhook_id: UUID, expected: Expected = None
    ) -> Endpoint:
        account_id = caller.require_webhooks(Scope.WEBHOOKS_MANAGE)
        endpoint = await transaction.endpoints.lock(account_id, webhook_id)
        if endpoint is None:
            raise NotFound
        if expected is not None:
            keyring = await self._keyring(transaction, endpoint)
            require_version(expected, endpoint_version(endpoint, keyring))
        return endpoint

    async def _view(self, transaction: Transaction, endpoint: Endpoint) -> EndpointView:
        return (await self._views(transaction, endpoint.account_id, [endpoint]))[0]

    async def _views(
        self, transaction: Transaction, account_id: UUID, endpoints: Sequence[Endpoint]
    ) -> list[EndpointView]:
        identifiers = [endpoint.id for endpoint in endpoints]
        secrets = await transaction.endpoints.secrets(account_id, identifiers)
        retrying = await transaction.deliveries.retrying(account_id, identifiers)
        now = self.clock.now()
        recent = Bars(now - RECENT, FINE_MINUTES, HOUR_MINUTES)
        counted = await transaction.counts.of_endpoints(account_id, identifiers, recent)
        return [
            EndpointView(
                endpoint,
                Keyring.at(now, secrets[endpoint.id]),
                health(
                    endpoint,
                    retrying.get(endpoint.id, 0),
                    sum(each.counts.failed for each in counted.get(endpoint.id, ())),
                ),
            )
            for endpoint in endpoints
        ]

    async def _keyring(self, transaction: Transaction, endpoint: Endpoint) -> Keyring:
        secrets = await transaction.endpoints.secrets(endpoint.account_id, [endpoint.id])
        return Keyring.at(self.clock.now(), secrets[endpoint.id])

    def _new_secret(
        self, webhook_id: UUID, version: int, now: datetime
    ) -> tuple[SigningSecret, StoredSecret]:
        secret = SigningSecret(self.entropy(KEY_BYTES))
        sealed = self.box.seal(secret.key, webhook_id.bytes)
        return secret, StoredSecret(version, sealed, secret.hint, now)

    async def _receiver(self, transaction: Transaction, account_id: UUID, url: str) -> str:
        try:
            parsed = parse_receiver_url(url, self.policy)
        except ReceiverUrlRefused as refused:
            raise Invalid(FieldError("url", refused.code, str(refused))) from refused
        if parsed.inbox is not None:
            inbox = await transaction.inboxes.get(account_id)
            if inbox is None or inbox.token != parsed.inbox:
                raise Invalid(
                    FieldError("url", "inbox_unknown", "This is not the account's test inbox.")
                )
        return parsed.text
