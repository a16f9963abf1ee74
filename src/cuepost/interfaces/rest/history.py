"""Calls for history: deliveries, events, event types, the audit trail."""

from typing import Any
from uuid import UUID

from cuepost.application.service import Service
from cuepost.domain.access import Scope
from cuepost.domain.event_catalog import CATALOG
from cuepost.interfaces.rest.answers import Rendered, Reply
from cuepost.interfaces.rest.operation import Call, Context, NoInput, Operation
from cuepost.interfaces.rest.running import browsing, reading
from cuepost.interfaces.rest.webhooks import WEBHOOK
from cuepost.interfaces.wire_models.audit import AuditList, AuditQuery
from cuepost.interfaces.wire_models.deliveries import (
    Delivery,
    DeliveryDetail,
    DeliveryList,
    DeliveryQuery,
)
from cuepost.interfaces.wire_models.event_types import EventType, EventTypeList
from cuepost.interfaces.wire_models.events import Event, EventList, EventQuery
from cuepost.interfaces.wire_models.paging import cut
from cuepost.ports.store import Transaction

DELIVERIES = f"{WEBHOOK}/deliveries"
DELIVERY = f"{DELIVERIES}/{{deliveryId}}"

_Plain = Call[NoInput, NoInput]
_CATALOG = EventTypeList([EventType.of(entry) for entry in CATALOG], None)


async def deliveries(
    service: Service, transaction: Transaction, call: Call[NoInput, DeliveryQuery]
) -> Reply:
    """The deliveries of the endpoint in the path, or of all endpoints."""
    webhook_id: UUID | None = call.ids.get("webhookId")
    views = await service.history.deliveries(
        transaction, call.caller, call.query.chosen(webhook_id), call.query.page()
    )
    shown = [Delivery.of(view.delivery, view.last_attempt) for view in views]
    return Reply(DeliveryList(*cut(shown, call.query.limit)))


async def delivery(service: Service, transaction: Transaction, call: _Plain) -> Reply:
    detail = await service.history.delivery(
        transaction, call.caller, call.ids["webhookId"], call.ids["deliveryId"]
    )
    return Reply(DeliveryDetail.of(detail))


async def events(
    service: Service, transaction: Transaction, call: Call[NoInput, EventQuery]
) -> Reply:
    views = await service.history.events(
        transaction, call.caller, call.query.chosen(), call.query.page()
    )
    return Reply(EventList(*cut([Event.of(view) for view in views], call.query.limit)))


async def event(service: Service, transaction: Transaction, call: _Plain) -> Reply:
    view = await service.history.event(transaction, call.caller, call.ids["eventId"])
    return Reply(Event.of(view))


async def event_types(context: Context, call: Call[Any, Any]) -> Rendered:
    """The catalogue is the same for every account, and needs no transaction."""
    return context.render(Reply(_CATALOG))


async def audit(
    service: Service, transaction: Transaction, call: Call[NoInput, AuditQuery]
) -> Reply:
    found = await service.history.audit(
        transaction, call.caller, call.query.chosen(), call.query.page()
    )
    return Reply(AuditList.of(found))


OPERATIONS = (
    Operation(
        method="GET",
        path=DELIVERIES,
        name="listWebhookDeliveries",
        tag="Deliveries",
        summary="List the deliveries of an endpoint",
        scope=Scope.WEBHOOKS_READ,
        webhooks=True,
        query=DeliveryQuery,
        answer=DeliveryList,
        may_lag=True,
        run=browsing(deliveries),
    ),
    Operation(
        method="GET",
        path=DELIVERY,
        name="getDelivery",
        tag="Deliveries",
        summary="Get a delivery with its event and attempts",
        scope=Scope.WEBHOOKS_READ,
        webhooks=True,
        answer=DeliveryDetail,
        run=reading(delivery),
    ),
    Operation(
        method="GET",
        path="/v1/deliveries",
        name="listDeliveries",
        tag="Deliveries",
        summary="List the deliveries of all endpoints",
        scope=Scope.WEBHOOKS_READ,
        webhooks=True,
        query=DeliveryQuery,
        answer=DeliveryList,
        may_lag=True,
        run=browsing(deliveries),
    ),
    Operation(
        method="GET",
        path="/v1/events",
        name="listEvents",
        tag="Events",
        summary="List events with their delivery status for each endpoint",
        description="Includes events without subscribed endpoints, so that pollers can reconcile.",
        scope=Scope.WEBHOOKS_READ,
        webhooks=True,
        query=EventQuery,
        answer=EventList,
        may_lag=True,
        run=browsing(events),
    ),
    Operation(
        method="GET",
        path="/v1/events/{eventId}",
        name="getEvent",
        tag="Events",
        summary="Get an event",
        scope=Scope.WEBHOOKS_READ,
        webhooks=True,
        answer=Event,
        run=reading(event),
    ),
    Operation(
        method="GET",
        path="/v1/event-types",
        name="listEventTypes",
        tag="Events",
        summary="List the event types",
        scope=Scope.WEBHOOKS_READ,
        webhooks=True,
        answer=EventTypeList,
        run=event_types,
    ),
    Operation(
        method="GET",
        path="/v1/audit",
        name="listAudit",
        tag="Audit",
        summary="List the audit trail",
        description="Entries are kept for 400 days. With a filter, a page can have fewer entries "
        "than `limit`, or none; the list ends when `nextCursor` is null.",
        scope=Scope.WEBHOOKS_MANAGE,
        query=AuditQuery,
        answer=AuditList,
        may_lag=True,
        run=browsing(audit),
    ),
)
