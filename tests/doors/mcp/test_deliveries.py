"""What agents are told of deliveries and attempts."""

from datetime import timedelta
from typing import Any

from cuepost.domain.attempt import Outcome, Timings
from cuepost.domain.delivery import Delivery, DeliveryStatus
from tests.application.world import OPERATOR
from tests.doors.mcp.agent import Desk, failed
from tests.doors.rest.client import URL, attempt_of


def named(delivery: Delivery) -> dict[str, str]:
    return {"webhook_id": str(delivery.webhook_id), "delivery_id": str(delivery.id)}


async def delivered_then_failed(desk: Desk) -> Delivery:
    world = desk.world
    await world.endpoint()
    delivery = await world.complete()
    await world.end(delivery, DeliveryStatus.DELIVERED)
    await desk.done("deliveries_retry", **named(delivery))
    world.clock.advance(60)
    await failed(world, delivery, budget=2)
    return delivery


async def test_an_agent_sees_the_url_and_rounded_durations_of_each_attempt(desk: Desk) -> None:
    await desk.world.endpoint()
    delivery = await desk.world.complete()
    timings = Timings(first_byte_ms=0.98765432)
    await failed(desk.world, delivery, duration_ms=1.23456789, timings=timings)
    detail = await desk.done("deliveries_get", **named(delivery))
    [attempt] = detail["attempts"]
    assert (attempt["url"], attempt["durationMs"]) == (URL, 1.235)
    assert attempt["timings"]["firstByteMs"] == 0.988
    assert detail["delivery"]["lastAttempt"]["durationMs"] == 1.235


async def test_an_agent_sees_attempts_that_do_not_count_and_that_they_do_not(desk: Desk) -> None:
    await desk.world.endpoint()
    delivery = await desk.world.complete()
    lost: dict[str, Any] = {
        "budget": 0,
        "started_at": delivery.created_at + timedelta(seconds=1),
        "request_headers": (),
        "response_status": None,
        "outcome": Outcome.INTERRUPTED,
    }
    made = attempt_of(delivery, **lost)
    await desk.world.do(lambda transaction: transaction.attempts.add([made]))
    explained = await desk.done("webhooks_explain")
    assert explained["cause"] == "not_sent_yet"
    assert explained["explanation"].startswith("The process that held this attempt ended;")
    await failed(desk.world, delivery)
    detail = await desk.done("deliveries_get", **named(delivery))
    assert [each["outcome"] for each in detail["attempts"]] == ["http_error", "interrupted"]
    assert detail["attempts"][1]["untrustedAnswer"] is None
    assert detail["delivery"]["lastAttempt"]["outcome"] == "http_error"
    assert (await desk.done("webhooks_explain"))["cause"] == "receiver_error"


async def test_failed_leaves_out_what_was_delivered_before_unless_an_agent_asks(desk: Desk) -> None:
    delivery = await delivered_then_failed(desk)
    many = {"webhook_id": str(delivery.webhook_id), "since": "2026-01-01T00:00:00Z"}
    for include_delivered, found in ((False, 0), (True, 1)):
        asked = {"include_delivered": include_delivered}
        listed = await desk.done("deliveries_list", status="failed", **asked)
        assert len(listed["data"]) == found
        job = await desk.done("deliveries_retry_many", **many, **asked)
        assert (job["count"], job["includeDelivered"]) == (found, include_delivered)
    [shown] = (await desk.done("deliveries_list"))["data"]
    assert (shown["status"], shown["deliveredAt"]) == ("failed", shown["createdAt"])
    explained = await desk.done("webhooks_explain")
    assert explained["explanation"].startswith(f"It was delivered at {shown['deliveredAt']} and")


async def test_an_agent_learns_that_access_was_closed_and_what_to_do(desk: Desk) -> None:
    world = desk.world
    await world.endpoint()
    set_access = world.service.access.set_webhooks
    await world.do(set_access, OPERATOR, world.account.id, False)
    delivery = await world.complete()
    await world.do(set_access, OPERATOR, world.account.id, True)
    explained = await desk.done("webhooks_explain")
    assert explained["cause"] == "access_was_closed"
    assert explained["findings"][0]["deliveryId"] == str(delivery.id)
    assert explained["fix"] == "Send the delivery again, alone or with a bulk retry."
    retried = await desk.done("deliveries_retry", **named(delivery))
    assert (retried["status"], retried["reason"]) == ("pending", None)
