"""The overview: what needs attention comes first, and its figures are those of the history."""

import re
from uuid import UUID

import pytest

from cuepost.domain.alert import BACKLOG_FROM
from cuepost.domain.attempt import Outcome
from cuepost.domain.delivery import DeliveryStatus as S
from tests.interfaces.web.endpoints import LIST, created
from tests.interfaces.web.page_client import PageClient

TILE = re.compile(r"<div><dt>([^<]+)</dt><dd>([^<]*)</dd>")
CHANGE = re.compile(r'<dt>([^<]+)</dt><dd>[^<]*</dd><dd class="change">(.*?)</dd>')


def tiles(page: str) -> dict[str, str]:
    return dict(TILE.findall(page.partition('<dl class="tiles">')[2].partition("</dl>")[0]))


def changes(page: str) -> dict[str, str]:
    return {name: re.sub("<[^>]+>", "", change) for name, change in CHANGE.findall(page)}


async def record(
    page_client: PageClient, webhook_id: UUID, *, delivered: int, failed: int, millis: float
) -> None:
    """Ended deliveries, with attempts that took so long."""
    harness = page_client.harness
    for status in [S.DELIVERED] * delivered + [S.FAILED] * failed:
        outcome = Outcome.DELIVERED if status is S.DELIVERED else Outcome.HTTP_ERROR
        delivery = await harness.complete_to(webhook_id)
        await harness.record(delivery, status, outcome=outcome, duration_ms=millis)


async def overview(page_client: PageClient, query: str = "") -> str:
    return (await page_client.get(f"/settings{query}")).text


async def test_an_account_without_endpoints_is_led_to_the_test_inbox(
    page_client: PageClient,
) -> None:
    page = await overview(page_client)
    assert "There is no endpoint yet" in page
    assert f'href="{LIST}/new?inbox=1"' in page


async def test_a_new_endpoint_needs_no_attention(page_client: PageClient) -> None:
    await created(page_client)
    page = await overview(page_client)
    assert "Nothing. All endpoints that have received something are healthy." in page
    assert 'class="attention"' not in page


async def test_a_rotation_is_announced_on_its_last_day(page_client: PageClient) -> None:
    webhook_id, harness = await created(page_client), page_client.harness
    await harness.do(harness.service.webhooks.rotate_secret, harness.owner, webhook_id)
    assert "the previous secret stops working" in await overview(page_client)
    harness.clock.advance(days=2)
    assert "the previous secret stops working" not in await overview(page_client)


@pytest.mark.parametrize(
    ("query", "current"),
    [
        ("", "24 hours"),
        ("?range=1h", "1 hour"),
        ("?range=7d", "7 days"),
        ("?range=30d", "30 days"),
        ("?range=nonsense", "24 hours"),
    ],
)
async def test_the_range_is_in_the_address(
    page_client: PageClient, query: str, current: str
) -> None:
    page = await overview(page_client, query)
    assert re.findall(r'aria-current="true">([^<]+)<', page) == [current]


async def test_figures_are_of_the_range(page_client: PageClient) -> None:
    webhook_id, harness = await created(page_client), page_client.harness
    for status in (S.DELIVERED, S.DELIVERED, S.DELIVERED, S.FAILED, S.CANCELLED):
        delivery = await harness.complete_to(webhook_id)
        if status is S.CANCELLED:
            await harness.end(delivery, status)
        else:
            outcome = Outcome.DELIVERED if status is S.DELIVERED else Outcome.HTTP_ERROR
            await harness.record(delivery, status, outcome=outcome, duration_ms=20.0)
    page = await overview(page_client)
    assert tiles(page) == {
        "Success rate": "75 %",
        "Delivered": "3",
        "Failed": "1",
        "Cancelled": "1",
        "p50 latency": "18 ms",
        "p95 latency": "24 ms",
    }
    assert "3 delivered, 1 failed, 1 cancelled" in page
    assert 'class="attention"' in page
    harness.clock.advance(days=2)
    assert tiles(await overview(page_client))["Delivered"] == "0"
    assert tiles(await overview(page_client, "?range=7d"))["Delivered"] == "3"


async def test_figures_are_compared_with_the_period_before(page_client: PageClient) -> None:
    webhook_id, clock = await created(page_client), page_client.harness.clock
    await record(page_client, webhook_id, delivered=6, failed=2, millis=20)
    page = await overview(page_client)
    assert (changes(page), "Compared with" in page) == ({}, False)
    # An hour is nearly over, so a day has nearly the length of the day before.
    clock.advance(hours=24, minutes=55)
    await record(page_client, webhook_id, delivered=9, failed=1, millis=40)
    page = await overview(page_client)
    assert "Compared with the 24 hours before; numbers of deliveries as rates" in page
    assert {name: text.partition(",")[0] for name, text in changes(page).items()} == {
        "Success rate": "+15.0 points",
        "Delivered": "+50 %",
        "Failed": "\N{MINUS SIGN}50 %",
        "Cancelled": "no change",
        "p50 latency": "+114 %",
        "p95 latency": "+101 %",
    }
    assert changes(page)["Delivered"] == "+50 %, compared with the 24 hours before"
    assert changes(await overview(page_client, "?range=7d")) == {}


async def test_what_was_0_before_is_compared_in_words(page_client: PageClient) -> None:
    webhook_id, clock = await created(page_client), page_client.harness.clock
    await record(page_client, webhook_id, delivered=1, failed=0, millis=20)
    clock.advance(hours=1)
    await record(page_client, webhook_id, delivered=0, failed=1, millis=20)
    found = changes(await overview(page_client, "?range=1h"))
    assert found["Failed"] == "from 0, compared with the hour before"
    assert found["Delivered"].startswith("\N{MINUS SIGN}100 %")


async def test_without_access_the_overview_says_who_can_open_it(stranger: PageClient) -> None:
    await stranger.sign_in(await stranger.harness.new_owner(webhooks_enabled=False))
    answer = await stranger.get("/settings")
    assert answer.status_code == 200
    assert "Ask the operator of this service to open access." in answer.text


async def test_a_failing_endpoint_is_announced_on_every_page(page_client: PageClient) -> None:
    webhook_id, harness = await created(page_client), page_client.harness
    assert "needs attention" not in (await page_client.get("/settings/projects")).text
    await harness.record(await harness.complete_to(webhook_id), S.FAILED)
    page = (await page_client.get("/settings/projects")).text
    assert "1 endpoint needs attention" in page


async def test_a_backlog_needs_attention(page_client: PageClient) -> None:
    webhook_id, harness = await created(page_client), page_client.harness
    await harness.complete_to(webhook_id)
    harness.clock.advance(BACKLOG_FROM.total_seconds() + 1)
    await harness.service.maintenance.alerts.watch_backlogs()
    page = await overview(page_client)
    assert "pill-backlog" in page
    assert "deliveries have waited for" in page
