"""Calls for webhook endpoints and their secrets."""

from uuid import UUID

from cuepost.application.manage_webhooks import EndpointView
from cuepost.application.service import Service
from cuepost.domain.access import Scope
from cuepost.domain.errors import EndpointDisabled, EndpointLimitReached, RotationOverlapActive
from cuepost.interfaces.rest.answers import Reply
from cuepost.interfaces.rest.operation import Call, NoInput, Operation
from cuepost.interfaces.rest.running import changing, reading
from cuepost.interfaces.wire_models.deliveries import Delivery
from cuepost.interfaces.wire_models.paging import PageQuery, cut
from cuepost.interfaces.wire_models.shapes import given
from cuepost.interfaces.wire_models.webhooks import (
    CreatedWebhook,
    CreateWebhook,
    RotatedSecret,
    UpdateWebhook,
    Webhook,
    WebhookList,
)
from cuepost.ports.store import Transaction

WEBHOOKS = "/v1/webhooks"
WEBHOOK = "/v1/webhooks/{webhookId}"
_TAG = "Webhooks"

_Plain = Call[NoInput, NoInput]


def _id(call: Call[NoInput, NoInput] | Call[UpdateWebhook, NoInput]) -> UUID:
    return call.ids["webhookId"]


def _reply(view: EndpointView) -> Reply:
    return Reply(Webhook.of(view), version=view.version)


async def create(
    service: Service, transaction: Transaction, call: Call[CreateWebhook, NoInput]
) -> Reply:
    made = await service.webhooks.create(
        transaction,
        call.caller,
        call.body.url,
        given(call.body.events),
        given(call.body.description) or "",
    )
    location = f"{WEBHOOKS}/{made.view.endpoint.id}"
    return Reply(CreatedWebhook.of(made), location, made.view.version)


async def page(service: Service, transaction: Transaction, call: Call[NoInput, PageQuery]) -> Reply:
    views = await service.webhooks.page(transaction, call.caller, call.query.page())
    return Reply(WebhookList(*cut([Webhook.of(view) for view in views], call.query.limit)))


async def get(service: Service, transaction: Transaction, call: _Plain) -> Reply:
    return _reply(await service.webhooks.get(transaction, call.caller, _id(call)))


async def update(
    service: Service, transaction: Transaction, call: Call[UpdateWebhook, NoInput]
) -> Reply:
    changed = await service.webhooks.change(
        transaction, call.caller, _id(call), call.body.change(), call.expected
    )
    return _reply(changed)


async def delete(service: Service, transaction: Transaction, call: _Plain) -> Reply:
    await service.webhooks.delete(transaction, call.caller, _id(call), call.expected)
    return Reply()


async def rotate_secret(service: Service, transaction: Transaction, call: _Plain) -> Reply:
    made = await service.webhooks.rotate_secret(transaction, call.caller, _id(call), call.expected)
    return Reply(RotatedSecret.of(made), version=made.view.version)


async def end_overlap(service: Service, transaction: Transaction, call: _Plain) -> Reply:
    view = await service.webhooks.end_overlap(transaction, call.caller, _id(call), call.expected)
    return _reply(view)


async def send_test(service: Service, transaction: Transaction, call: _Plain) -> Reply:
    delivery = await service.webhooks.send_test(transaction, call.caller, _id(call))
    return Reply(Delivery.of(delivery), f"{WEBHOOKS}/{_id(call)}/deliveries/{delivery.id}")


OPERATIONS = (
    Operation(
        method="POST",
        path=WEBHOOKS,
        name="createWebhook",
        tag=_TAG,
        summary="Create an endpoint",
        description="The response contains the signing secret, which is never shown again.",
        scope=Scope.WEBHOOKS_MANAGE,
        webhooks=True,
        body=CreateWebhook,
        status=201,
        answer=CreatedWebhook,
        refusals=(EndpointLimitReached,),
        versioned=True,
        run=changing(create),
    ),
    Operation(
        method="GET",
        path=WEBHOOKS,
        name="listWebhooks",
        tag=_TAG,
        summary="List endpoints",
        scope=Scope.WEBHOOKS_READ,
        webhooks=True,
        query=PageQuery,
        answer=WebhookList,
        run=reading(page),
    ),
    Operation(
        method="GET",
        path=WEBHOOK,
        name="getWebhook",
        tag=_TAG,
        summary="Get an endpoint",
        scope=Scope.WEBHOOKS_READ,
        webhooks=True,
        answer=Webhook,
        versioned=True,
        run=reading(get),
    ),
    Operation(
        method="PATCH",
        path=WEBHOOK,
        name="updateWebhook",
        tag=_TAG,
        summary="Change an endpoint",
        description="Disabling an endpoint cancels its pending deliveries and keeps its history.",
        scope=Scope.WEBHOOKS_MANAGE,
        webhooks=True,
        body=UpdateWebhook,
        answer=Webhook,
        versioned=True,
        run=changing(update),
    ),
    Operation(
        method="DELETE",
        path=WEBHOOK,
        name="deleteWebhook",
        tag=_TAG,
        summary="Delete an endpoint",
        description="The delivery history of the endpoint is deleted as well.",
        scope=Scope.WEBHOOKS_MANAGE,
        webhooks=True,
        status=204,
        answer=None,
        versioned=True,
        run=changing(delete),
    ),
    Operation(
        method="POST",
        path=f"{WEBHOOK}/rotate-secret",
        name="rotateSecret",
        tag=_TAG,
        summary="Rotate the signing secret",
        description="Deliveries are signed with both secrets until the previous one expires.",
        scope=Scope.WEBHOOKS_MANAGE,
        webhooks=True,
        answer=RotatedSecret,
        refusals=(RotationOverlapActive,),
        versioned=True,
        run=changing(rotate_secret),
    ),
    Operation(
        method="POST",
        path=f"{WEBHOOK}/end-overlap",
        name="endOverlap",
        tag=_TAG,
        summary="Stop the previous secret at once",
        description="Use this if a secret has leaked. Without an overlap nothing changes.",
        scope=Scope.WEBHOOKS_MANAGE,
        webhooks=True,
        answer=Webhook,
        versioned=True,
        run=changing(end_overlap),
    ),
    Operation(
        method="POST",
        path=f"{WEBHOOK}/test",
        name="sendTest",
        tag=_TAG,
        summary="Send a test event",
        description="A `webhook.test` event only for this endpoint, through the ordinary queue.",
        scope=Scope.WEBHOOKS_MANAGE,
        webhooks=True,
        status=202,
        answer=Delivery,
        refusals=(EndpointDisabled,),
        run=changing(send_test),
    ),
)
