"""What happens while an account's access is closed is on record, and can be sent afterwards."""

from typing import Any
from uuid import UUID

import pytest

from cuepost.domain.delivery import Delivery
from tests.application.harness import OPERATOR
from tests.interfaces.rest.client import NOW, Api, problem


async def set_access(api: Api, *, is_open: bool) -> None:
    harness = api.harness
    await harness.do(harness.service.access.set_webhooks, OPERATOR, harness.account.id, is_open)
    # A key that was looked up is trusted for a second.
    harness.clock.advance(1.001)


async def happened_while_closed(api: Api) -> tuple[Any, Delivery]:
    """The answer to the report, and the delivery that is on record."""
    await api.harness.endpoint()
    await set_access(api, is_open=False)
    project = await api.harness.project()
    report = {"reportId": "r", "projectId": str(project.id), "status": "completed"}
    [answer] = (await api.report(report))["results"]
    [delivery] = await api.harness.deliveries()
    return answer, delivery


def path_of(delivery: Delivery) -> str:
    return f"/v1/webhooks/{delivery.webhook_id}/deliveries/{delivery.id}"


async def test_an_event_while_access_is_closed_gets_a_cancelled_delivery_that_says_why(
    api: Api,
) -> None:
    answer, delivery = await happened_while_closed(api)
    assert answer == {
        "reportId": "r",
        "accepted": True,
        "eventId": str(delivery.event_id),
        "notified": False,
        "reason": "access_closed",
    }
    await set_access(api, is_open=True)
    [event] = (await api.done("GET", "/v1/events"))["data"]
    assert event["reason"] == "access_closed"
    assert event["deliveries"] == [
        {
            "webhookId": str(delivery.webhook_id),
            "deliveryId": str(delivery.id),
            "status": "cancelled",
            "reason": "access_closed",
        }
    ]
    shown = await api.done("GET", path_of(delivery))
    assert (shown["status"], shown["reason"], shown["attemptCount"], shown["deliveredAt"]) == (
        "cancelled",
        "access_closed",
        0,
        None,
    )
    assert shown["finishedAt"] == shown["createdAt"]
    assert shown["attempts"] == []


async def test_what_was_pending_when_access_was_closed_says_so(api: Api) -> None:
    await api.harness.endpoint()
    delivery = await api.harness.complete()
    await set_access(api, is_open=False)
    await set_access(api, is_open=True)
    shown = await api.done("GET", path_of(delivery))
    assert (shown["status"], shown["reason"]) == ("cancelled", "access_closed")


@pytest.mark.parametrize("in_bulk", [False, True])
async def test_it_can_be_retried_once_access_is_open_again(api: Api, in_bulk: bool) -> None:
    _, delivery = await happened_while_closed(api)
    retry = f"{path_of(delivery)}/retry"
    bulk, body = f"/v1/webhooks/{delivery.webhook_id}/retries", {"since": NOW}
    for path in (retry, bulk):
        refused = await api.call("POST", path, body if path == bulk else None)
        assert problem(refused) == (403, "webhooks_not_enabled")

    await set_access(api, is_open=True)
    if in_bulk:
        job = await api.done("POST", bulk, body)
        assert job["count"] == 1
        step = api.harness.service.redeliver.bulk_step
        assert await api.harness.do(step, delivery.account_id, UUID(job["id"]), 10)
    else:
        await api.done("POST", retry)
    shown = await api.done("GET", path_of(delivery))
    assert (shown["status"], shown["reason"], shown["budget"]) == ("pending", None, 2)
    assert await api.harness.queued() == {delivery.id}
