"""What agents are result of deliveries and attempts."""

from datetime import timedelta
from typing import Any

from cuepost.domain.attempt import Outcome, Timings
from cuepost.domain.delivery import Delivery, DeliveryStatus
from tests.application.harness import OPERATOR
from tests.interfaces.mcp.agent import McpService, failed
from tests.interfaces.rest.client import URL, attempt_of


def named(delivery: Delivery) -> dict[str, str]:
    return {"webhook_id": str(delivery.webhook_id), "delivery_id": str(delivery.id)}


async def delivered_then_failed(mcp_service: McpService) -> Delivery:
    harness = mcp_service.harness
    await harness.endpoint()
    delivery = await harness.complete()
    await harness.end(delivery, DeliveryStatus.DELIVERED)
    await mcp_service.done("deliveries_retry", **named(delivery))
    harness.clock.advance(60)
    await failed(harness, delivery, budget=2)
    return delivery


async def test_an_agent_sees_the_url_and_rounded_durations_of_each_attempt(
    mcp_service: McpService,
) -> None:
    await mcp_service.harness.endpoint()
    delivery = await mcp_service.harness.complete()
    timings = Timings(first_byte_ms=0.98765432)
    await failed(mcp_service.harness, delivery, duration_ms=1.23456789, timings=timings)
    detail = await mcp_service.done("deliveries_get", **named(delivery))
    [attempt] = detail["attempts"]
    assert (attempt["url"], attempt["durationMs"]) == (URL, 1.235)
    assert attempt["timings"]["firstByteMs"] == 0.988
    assert detail["delivery"]["lastAttempt"]["durationMs"] == 1.235


async def test_an_agent_sees_attempts_that_do_not_count_and_that_they_do_not(
    mcp_service: McpService,
) -> None:
    await mcp_service.harness.endpoint()
    delivery = await mcp_service.harness.complete()
    lost: dict[str, Any] = {
        "budget": 0,
        "started_at": delivery.created_at + timedelta(seconds=1),
        "request_headers": (),
        "response_status": None,
        "outcome": Outcome.INTERRUPTED,
    }
    made = attempt_of(delivery, **lost)
    await mcp_service.harness.do(lambda transaction: transaction.attempts.add([made]))
    explained = await mcp_service.done("webhooks_explain")
    assert explained["cause"] == "not_sent_yet"
    assert explained["explanation"].startswith("The process that held this attempt ended;")
    await failed(mcp_service.harness, delivery)
    detail = await mcp_service.done("deliveries_get", **named(delivery))
    assert [each["outcome"] for each in detail["attempts"]] == ["http_error", "interrupted"]
    assert detail["attempts"][1]["untrustedAnswer"] is None
    assert detail["delivery"]["lastAttempt"]["outcome"] == "http_error"
    assert (await mcp_service.done("webhooks_explain"))["cause"] == "receiver_error"


async def test_failed_leaves_out_what_was_delivered_before_unless_an_agent_asks(
    mcp_service: McpService,
) -> None:
    delivery = await delivered_then_failed(mcp_service)
    many = {"webhook_id": str(delivery.webhook_id), "since": "2026-01-01T00:00:00Z"}
    for include_delivered, found in ((False, 0), (True, 1)):
        asked = {"include_delivered": include_delivered}
        listed = await mcp_service.done("deliveries_list", status="failed", **asked)
        assert len(listed["data"]) == found
        job = await mcp_service.done("deliveries_retry_many", **many, **asked)
        assert (job["count"], job["includeDelivered"]) == (found, include_delivered)
    [shown] = (await mcp_service.done("deliveries_list"))["data"]
    assert (shown["status"], shown["deliveredAt"]) == ("failed", shown["createdAt"])
    explained = await mcp_service.done("webhooks_explain")
    assert explained["explanation"].startswith(f"It was delivered at {shown['deliveredAt']} and")


async def test_an_agent_learns_that_access_was_closed_and_what_to_do(
    mcp_service: McpService,
) -> None:
    harness = mcp_service.harness
    await harness.endpoint()
    set_access = harness.service.access.set_webhooks
    await harness.do(set_access, OPERATOR, harness.account.id, False)
    delivery = await harness.complete()
    await harness.do(set_access, OPERATOR, harness.account.id, True)
    explained = await mcp_service.done("webhooks_explain")
    assert explained["cause"] == "access_was_closed"
    assert explained["findings"][0]["deliveryId"] == str(delivery.id)
    assert explained["fix"] == "Send the delivery again, alone or with a bulk retry."
    retried = await mcp_service.done("deliveries_retry", **named(delivery))
    assert (retried["status"], retried["reason"]) == ("pending", None)
