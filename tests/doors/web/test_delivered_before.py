"""Pages about deliveries that arrived once, that were held back, or whose attempts do not count."""

from html import unescape
from uuid import UUID

from cuepost.domain.attempt import EXPLANATIONS, Outcome
from cuepost.domain.delivery import DeliveryStatus
from tests.application.world import OPERATOR
from tests.doors.rest.client import attempt_of
from tests.doors.web.endpoints import LIST, URL, created
from tests.doors.web.guest import Guest


async def delivered_then_failed(guest: Guest, webhook_id: UUID) -> str:
    """The address of its page."""
    world = guest.world
    delivery = await world.complete()
    await world.end(delivery, DeliveryStatus.DELIVERED)
    await world.do(world.service.redeliver.one, world.owner, webhook_id, delivery.id)
    world.clock.advance(60)
    made = [
        attempt_of(delivery, outcome=Outcome.DELIVERED, response_status=200),
        attempt_of(delivery, budget=2, started_at=world.clock.now()),
    ]
    await world.do(lambda transaction: transaction.attempts.add(made))
    await world.end(delivery, DeliveryStatus.FAILED)
    return f"{LIST}/{webhook_id}/deliveries/{delivery.id}"


async def test_a_delivery_that_arrived_once_says_so_when_a_retry_failed(guest: Guest) -> None:
    here = await delivered_then_failed(guest, await created(guest))
    page = unescape((await guest.get(here)).text)
    assert "Delivered on <time" in page
    assert "</time>; the last retry failed. Your server answered 500" in page
    assert "<dt>Delivered</dt>" in page
    assert page.count(f'Sent to <code class="wrap">{URL}</code>') == 2


async def test_failed_rows_leave_out_what_was_delivered_before_unless_asked(guest: Guest) -> None:
    here = await delivered_then_failed(guest, await created(guest))
    row = f"row-{here.rpartition('/')[2]}"
    for query, is_shown in (
        ("", True),
        ("?status=failed", False),
        ("?status=failed&delivered=nonsense", False),
        ("?status=failed&delivered=included", True),
    ):
        page = (await guest.get(f"/settings/deliveries{query}")).text
        assert (row in page) is is_shown, query
        assert ("delivered before</small>" in page) is is_shown, query


async def test_a_bulk_retry_leaves_out_what_was_delivered_before_unless_asked(guest: Guest) -> None:
    webhook_id = await created(guest)
    await delivered_then_failed(guest, webhook_id)
    here, since = f"{LIST}/{webhook_id}/retries/new", "2026-01-01T00:00"
    await guest.get(here)
    counted = await guest.post(here, since=since, statuses=["failed"])
    assert "<strong>0</strong> deliveries would be sent again" in counted.text
    asked = {"since": since, "statuses": ["failed"], "include_delivered": "yes"}
    counted = await guest.post(here, **asked)
    assert "<strong>1</strong> delivery would be sent again" in counted.text
    assert 'name="include_delivered" value="yes" checked' in counted.text
    await guest.done(here, **asked, begin="yes")
    [job] = (await guest.world.dump())["bulk_retries"]
    assert (job.total, job.include_delivered) == (1, True)


async def test_what_was_held_back_while_access_was_closed_says_so(guest: Guest) -> None:
    webhook_id, world = await created(guest), guest.world
    set_access = world.service.access.set_webhooks
    await world.do(set_access, OPERATOR, world.account.id, False)
    delivery = await world.complete()
    await world.do(set_access, OPERATOR, world.account.id, True)
    page = unescape((await guest.get(f"{LIST}/{webhook_id}/deliveries/{delivery.id}")).text)
    said = "Cancelled, because the account's access to webhooks was closed. It can be retried"
    assert said in page
    event = unescape((await guest.get(f"/settings/events/{delivery.event_id}")).text)
    assert "access closed" in event


async def test_attempts_that_do_not_count_are_shown_apart(guest: Guest) -> None:
    webhook_id, world = await created(guest), guest.world
    delivery = await world.complete()
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
    await world.do(lambda transaction: transaction.attempts.add([lost]))
    here = f"{LIST}/{webhook_id}/deliveries/{delivery.id}"
    page = unescape((await guest.get(here)).text)
    assert "Interrupted attempt" in page
    assert "counts for no budget" in page
    assert EXPLANATIONS[Outcome.INTERRUPTED].sentence in page
    assert "signed with" not in page
    assert "curl" not in page
    doctor = await guest.get(f"/settings/doctor?delivery={delivery.id}&webhook={webhook_id}")
    assert doctor.status_code == 404
