"""What happened: deliveries with their attempts, events with their verdicts, the audit trail."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from cuepost.domain.access import Caller, Scope
from cuepost.domain.attempt import Attempt
from cuepost.domain.audit import AuditEntry
from cuepost.domain.delivery import Delivery
from cuepost.domain.errors import NotFound
from cuepost.domain.event import Event
from cuepost.ports.history import DeliveryFilter, EventFilter
from cuepost.ports.records import Page
from cuepost.ports.store import Transaction


@dataclass(frozen=True, slots=True)
class DeliveryView:
    delivery: Delivery
    last_attempt: Attempt | None


@dataclass(frozen=True, slots=True)
class DeliveryDetail:
    delivery: Delivery
    event: Event
    attempts: Sequence[Attempt]


@dataclass(frozen=True, slots=True)
class EventView:
    """An event and its verdict for each endpoint that it concerned."""

    event: Event
    deliveries: Sequence[Delivery]


class BrowseHistory:
    async def deliveries(
        self, transaction: Transaction, caller: Caller, chosen: DeliveryFilter, page: Page
    ) -> list[DeliveryView]:
        account_id = caller.require_webhooks(Scope.WEBHOOKS_READ)
        if chosen.webhook_id is not None:
            await self._require_endpoint(transaction, account_id, chosen.webhook_id)
        found = await transaction.deliveries.page(account_id, chosen, page)
        return await with_last_attempts(transaction, account_id, found)

    async def delivery(
        self, transaction: Transaction, caller: Caller, webhook_id: UUID, delivery_id: UUID
    ) -> DeliveryDetail:
        account_id = caller.require_webhooks(Scope.WEBHOOKS_READ)
        delivery = await transaction.deliveries.get(account_id, delivery_id)
        if delivery is None or delivery.webhook_id != webhook_id:
            raise NotFound
        event = await transaction.events.get(account_id, delivery.event_id)
        if event is None:
            raise NotFound
        attempts = await transaction.attempts.of_delivery(account_id, delivery_id)
        return DeliveryDetail(delivery, event, attempts)

    async def events(
        self, transaction: Transaction, caller: Caller, chosen: EventFilter, page: Page
    ) -> list[EventView]:
        account_id = caller.require_webhooks(Scope.WEBHOOKS_READ)
        events = await transaction.events.page(account_id, chosen, page)
        deliveries = await transaction.deliveries.of_events(
            account_id, [event.id for event in events]
        )
        return [EventView(event, _of(event, deliveries)) for event in events]

    async def event(self, transaction: Transaction, caller: Caller, event_id: UUID) -> EventView:
        account_id = caller.require_webhooks(Scope.WEBHOOKS_READ)
        event = await transaction.events.get(account_id, event_id)
        if event is None:
            raise NotFound
        deliveries = await transaction.deliveries.of_events(account_id, [event_id])
        return EventView(event, _of(event, deliveries))

    async def audit(self, transaction: Transaction, caller: Caller, page: Page) -> list[AuditEntry]:
        caller.require(Scope.WEBHOOKS_MANAGE)
        return await transaction.audit.page(caller.account, page)

    async def _require_endpoint(
        self, transaction: Transaction, account_id: UUID, webhook_id: UUID
    ) -> None:
        if await transaction.endpoints.get(account_id, webhook_id) is None:
            raise NotFound


async def with_last_attempts(
    transaction: Transaction, account_id: UUID, deliveries: Sequence[Delivery]
) -> list[DeliveryView]:
    tried = [delivery.id for delivery in deliveries if delivery.attempt_count]
    last = await transaction.attempts.last_of(account_id, tried) if tried else {}
    return [DeliveryView(delivery, last.get(delivery.id)) for delivery in deliveries]


def _of(event: Event, deliveries: Mapping[UUID, Sequence[Delivery]]) -> Sequence[Delivery]:
    return deliveries.get(event.id, ())
