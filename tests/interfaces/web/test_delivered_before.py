"""Pages about deliveries that arrived once, that were held back, or whose attempts do not count."""

from html import unescape
from uuid import UUID

from cuepost.domain.attempt import EXPLANATIONS, Outcome
from cuepost.domain.delivery import DeliveryStatus
from cuepost.interfaces.web.rendering import address
from tests.application.harness import OPERATOR
from tests.interfaces.rest.client import attempt_of
from tests.interfaces.web.endpoints import LIST, URL, created
from tests.interfaces.web.page_client import PageClient


async def delivered_then_failed(page_client: PageClient, webhook_id: UUID) -> str:
    """The address of its page."""
    harness = page_client.harness
    delivery = await harness.complete()
    await harness.end(delivery, DeliveryStatus.DELIVERED)
    await harness.do(harness.service.redeliver.one, harness.owner, webhook_id, delivery.id)
    harness.clock.advance(60)
    made = [
        attempt_of(delivery, outcome=Outcome.DELIVERED, response_status=200),
        attempt_of(delivery, budget=2, started_at=harness.clock.now()),
    ]
    await harness.do(lambda transaction: transaction.attempts.add(made))
    await harness.end(delivery, DeliveryStatus.FAILED)
    return f"{LIST}/{webhook_id}/deliveries/{delivery.id}"


async def test_a_delivery_that_arrived_once_says_so_when_a_retry_failed(
    page_client: PageClient,
) -> None:
    here = await delivered_then_failed(page_client, await created(page_client))
    page = unescape((await page_client.get(here)).text)
    assert "Delivered on <time" in page
    assert "</time>; the last retry failed. Your server answered 500" in page
    assert "<dt>Delivered</dt>" in page
    assert page.count(f"POST {address(URL)}") == 2


async def test_failed_rows_leave_out_what_was_delivered_before_unless_asked(
    page_client: PageClient,
) -> None:
    here = await delivered_then_failed(page_client, await created(page_client))
    row = f"row-{here.rpartition('/')[2]}"
    for query, is_shown in (
        ("", True),
        ("?status=failed", False),
        ("?status=failed&delivered=nonsense", False),
        ("?status=failed&delivered=included", True),
    ):
        page = (await page_client.get(f"/settings/deliveries{query}")).text
        assert (row in page) is is_shown, query
        assert ("delivered before</small>" in page) is is_shown, query


async def test_a_bulk_retry_leaves_out_what_was_delivered_before_unless_asked(
    page_client: PageClient,
) -> None:
    webhook_id = await created(page_client)
    await delivered_then_failed(page_client, webhook_id)
    here, since = f"{LIST}/{webhook_id}/retries/new", "2026-01-01T00:00"
    await page_client.get(here)
    counted = await page_client.post(here, since=since, statuses=["failed"])
    assert "<strong>0</strong> deliveries would be retried" in counted.text
    asked = {"since": since, "statuses": ["failed"], "include_delivered": "yes"}
    counted = await page_client.post(here, **asked)
    assert "<strong>1</strong> delivery would be retried" in counted.text
    assert 'name="include_delivered" value="yes" checked' in counted.text
    await page_client.done(here, **asked, begin="yes")
    [job] = (await page_client.harness.dump())["bulk_retries"]
    assert (job.total, job.include_delivered) == (1, True)


async def test_what_was_held_back_while_access_was_closed_says_so(page_client: PageClient) -> None:
    webhook_id, harness = await created(page_client), page_client.harness
    set_access = harness.service.access.set_webhooks
    await harness.do(set_access, OPERATOR, harness.account.id, False)
    delivery = await harness.complete()
    await harness.do(set_access, OPERATOR, harness.account.id, True)
    page = unescape((await page_client.get(f"{LIST}/{webhook_id}/deliveries/{delivery.id}")).text)
    said = "Cancelled, because the account's access to webhooks was closed. You can retry"
    assert said in page
    event = unescape((await page_client.get(f"/settings/events/{delivery.event_id}")).text)
    assert "access closed" in event


async def test_attempts_that_do_not_count_are_shown_apart(page_client: PageClient) -> None:
    webhook_id, harness = await created(page_client), page_client.harness
    delivery = await harness.complete()
    lost = attempt_of(
        delivery,
        budget=0,
        duration_ms=0.0,
        signed_with=(),
        request_headers=(),
        response_status=None,
        response_headers=(),
        response_body=b"",
        outcome=Outcome.INTERRUPTED,
    )
    await harness.do(lambda transaction: transaction.attempts.add([lost]))
    here = f"{LIST}/{webhook_id}/deliveries/{delivery.id}"
    page = unescape((await page_client.get(here)).text)
    assert "Interrupted attempt" in page
    assert "not counted" in page
    assert EXPLANATIONS[Outcome.INTERRUPTED].sentence in page
    assert "signed with" not in page
    assert "curl" not in page
    doctor = await page_client.get(f"/settings/doctor?delivery={delivery.id}&webhook={webhook_id}")
    assert doctor.status_code == 404
