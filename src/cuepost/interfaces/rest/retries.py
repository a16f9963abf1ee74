"""Calls that retry ended deliveries."""

from cuepost.application.service import Service
from cuepost.domain.access import Scope
from cuepost.domain.errors import DeliveryInProgress, EndpointDisabled, ProjectNotEligible
from cuepost.interfaces.rest.answers import Reply
from cuepost.interfaces.rest.history import DELIVERY
from cuepost.interfaces.rest.operation import Call, NoInput, Operation
from cuepost.interfaces.rest.running import changing, reading
from cuepost.interfaces.rest.webhooks import WEBHOOK, WEBHOOKS
from cuepost.interfaces.wire_models.bulk_retries import BulkRetry, StartBulkRetry
from cuepost.interfaces.wire_models.deliveries import Delivery
from cuepost.interfaces.wire_models.shapes import given, instant_of, optional_instant
from cuepost.ports.store import Transaction

BULK_RETRIES = f"{WEBHOOK}/retries"
BULK_RETRY = f"{BULK_RETRIES}/{{retryId}}"

_Plain = Call[NoInput, NoInput]


async def retry(service: Service, transaction: Transaction, call: _Plain) -> Reply:
    webhook_id, delivery_id = call.ids["webhookId"], call.ids["deliveryId"]
    view = await service.redeliver.one(transaction, call.caller, webhook_id, delivery_id)
    return Reply(
        Delivery.of(view.delivery, view.last_attempt),
        f"{WEBHOOKS}/{webhook_id}/deliveries/{delivery_id}",
    )


async def start_bulk(
    service: Service, transaction: Transaction, call: Call[StartBulkRetry, NoInput]
) -> Reply:
    webhook_id, wanted = call.ids["webhookId"], call.body
    dry_run = given(wanted.dry_run) or False
    job = await service.redeliver.start_bulk(
        transaction,
        call.caller,
        webhook_id,
        since=instant_of(wanted.since, "since"),
        until=optional_instant(wanted.until, "until"),
        statuses=given(wanted.statuses) or (),
        include_delivered=given(wanted.include_delivered) or False,
        dry_run=dry_run,
    )
    location = None if dry_run else f"{WEBHOOKS}/{webhook_id}/retries/{job.id}"
    return Reply(BulkRetry.of(job, dry_run=dry_run), location)


async def get_bulk(service: Service, transaction: Transaction, call: _Plain) -> Reply:
    job = await service.redeliver.bulk(
        transaction, call.caller, call.ids["webhookId"], call.ids["retryId"]
    )
    return Reply(BulkRetry.of(job))


async def cancel_bulk(service: Service, transaction: Transaction, call: _Plain) -> Reply:
    job = await service.redeliver.cancel_bulk(
        transaction, call.caller, call.ids["webhookId"], call.ids["retryId"]
    )
    return Reply(BulkRetry.of(job))


OPERATIONS = (
    Operation(
        method="POST",
        path=f"{DELIVERY}/retry",
        name="retryDelivery",
        tag="Retries",
        summary="Retry an ended delivery",
        description="Same event id, a new budget of three attempts, to the current URL.",
        scope=Scope.WEBHOOKS_MANAGE,
        webhooks=True,
        status=202,
        answer=Delivery,
        refusals=(DeliveryInProgress, EndpointDisabled, ProjectNotEligible),
        run=changing(retry),
    ),
    Operation(
        method="POST",
        path=BULK_RETRIES,
        name="startBulkRetry",
        tag="Retries",
        summary="Retry many ended deliveries",
        scope=Scope.WEBHOOKS_MANAGE,
        webhooks=True,
        body=StartBulkRetry,
        status=202,
        answer=BulkRetry,
        refusals=(EndpointDisabled,),
        run=changing(start_bulk),
    ),
    Operation(
        method="GET",
        path=BULK_RETRY,
        name="getBulkRetry",
        tag="Retries",
        summary="Get the progress of a bulk retry",
        scope=Scope.WEBHOOKS_READ,
        webhooks=True,
        answer=BulkRetry,
        run=reading(get_bulk),
    ),
    Operation(
        method="DELETE",
        path=BULK_RETRY,
        name="cancelBulkRetry",
        tag="Retries",
        summary="Cancel the rest of a bulk retry",
        description="Deliveries that were already retried are not affected.",
        scope=Scope.WEBHOOKS_MANAGE,
        webhooks=True,
        answer=BulkRetry,
        run=changing(cancel_bulk),
    ),
)
