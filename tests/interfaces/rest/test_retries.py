from typing import Any

import pytest

from cuepost.domain.delivery import Delivery, DeliveryStatus
from tests.application.harness import BASE_URL
from tests.interfaces.rest.client import NOW, Api, faults, problem


async def ended(api: Api, status: DeliveryStatus = DeliveryStatus.FAILED) -> Delivery:
    delivery = await api.harness.complete()
    await api.harness.end(delivery, status)
    return delivery


def path_of(delivery: Delivery) -> str:
    return f"/v1/webhooks/{delivery.webhook_id}/deliveries/{delivery.id}"


@pytest.mark.parametrize("status", ["delivered", "failed", "cancelled"])
async def test_an_ended_delivery_is_sent_again_with_a_new_budget(api: Api, status: str) -> None:
    await api.harness.endpoint()
    delivery = await ended(api, DeliveryStatus(status))
    before = (await api.done("GET", "/v1/deliveries"))["data"][0]
    answer = await api.call("POST", f"{path_of(delivery)}/retry")
    assert answer.status_code == 202
    assert answer.headers["location"] == BASE_URL + path_of(delivery)
    assert answer.json() == before | {
        "status": "pending",
        "reason": None,
        "budget": 2,
        "nextAttemptAt": NOW,
        "finishedAt": None,
    }


async def test_a_delivery_under_way_is_not_sent_again(api: Api) -> None:
    await api.harness.endpoint()
    delivery = await api.harness.complete()
    answer = await api.call("POST", f"{path_of(delivery)}/retry")
    assert problem(answer) == (409, "delivery_in_progress")


async def test_nothing_is_sent_again_to_a_disabled_endpoint(api: Api) -> None:
    await api.harness.endpoint()
    delivery = await ended(api)
    await api.harness.enable(delivery.webhook_id, False)
    answer = await api.call("POST", f"{path_of(delivery)}/retry")
    assert problem(answer) == (409, "endpoint_disabled")
    bulk = await api.call("POST", f"/v1/webhooks/{delivery.webhook_id}/retries", {"since": NOW})
    assert problem(bulk) == (409, "endpoint_disabled")


async def test_nothing_is_sent_again_about_a_deleted_project(api: Api) -> None:
    await api.harness.endpoint()
    delivery = await ended(api)
    await api.done("DELETE", f"/v1/projects/{delivery.project_id}")
    answer = await api.call("POST", f"{path_of(delivery)}/retry")
    assert problem(answer) == (409, "project_not_eligible")


def job(**changed: Any) -> dict[str, Any]:
    return {
        "id": None,
        "status": "running",
        "count": 2,
        "retried": 0,
        "skipped": 0,
        "since": NOW,
        "until": "2026-01-02T03:04:06.678Z",
        "statuses": ["failed", "cancelled"],
        "includeDelivered": False,
        "createdAt": "2026-01-02T03:04:06.678Z",
        "finishedAt": None,
        "dryRun": False,
    } | changed


async def test_a_bulk_retry_is_counted_watched_and_cancelled(api: Api) -> None:
    with_secret = await api.harness.endpoint()
    for status in ("failed", "cancelled", "delivered"):
        await ended(api, DeliveryStatus(status))
    api.harness.clock.advance(1)
    path = f"/v1/webhooks/{with_secret.view.endpoint.id}/retries"
    answer = await api.call("POST", path, {"since": NOW})
    started = answer.json()
    assert answer.status_code == 202
    assert answer.headers["location"] == f"{BASE_URL}{path}/{started['id']}"
    assert started == job(id=started["id"])
    assert await api.done("GET", f"{path}/{started['id']}") == started
    cancelled = started | {"status": "cancelled", "finishedAt": "2026-01-02T03:04:06.678Z"}
    assert await api.done("DELETE", f"{path}/{started['id']}") == cancelled
    assert await api.done("DELETE", f"{path}/{started['id']}") == cancelled
    assert await api.done("GET", f"{path}/{started['id']}") == cancelled


async def test_a_dry_run_counts_and_stores_nothing(api: Api) -> None:
    with_secret = await api.harness.endpoint()
    await ended(api, DeliveryStatus.DELIVERED)
    api.harness.clock.advance(1)
    before = await api.stored()
    body = {
        "since": "2026-01-02T04:04:05.678+01:00",
        "until": NOW.replace("05.678", "05.679"),
        "statuses": ["delivered"],
        "dryRun": True,
    }
    answer = await api.call("POST", f"/v1/webhooks/{with_secret.view.endpoint.id}/retries", body)
    assert answer.status_code == 202
    assert "location" not in answer.headers
    assert answer.json() == job(
        status="finished",
        count=1,
        until=body["until"],
        statuses=["delivered"],
        finishedAt="2026-01-02T03:04:06.678Z",
        dryRun=True,
    )
    assert await api.stored() == before


async def test_only_ended_deliveries_can_be_chosen_for_a_bulk_retry(api: Api) -> None:
    with_secret = await api.harness.endpoint()
    path = f"/v1/webhooks/{with_secret.view.endpoint.id}/retries"
    answer = await api.call("POST", path, {"since": NOW, "statuses": ["failed", "pending"]})
    assert faults(answer) == [("statuses", "status_not_final")]


async def test_a_bulk_retry_of_another_endpoint_is_not_found_under_this_one(api: Api) -> None:
    one, other = await api.harness.endpoint(), await api.harness.endpoint()
    path = f"/v1/webhooks/{one.view.endpoint.id}/retries"
    started = await api.done("POST", path, {"since": NOW})
    elsewhere = f"/v1/webhooks/{other.view.endpoint.id}/retries/{started['id']}"
    for method in ("GET", "DELETE"):
        assert problem(await api.call(method, elsewhere)) == (404, "not_found")
