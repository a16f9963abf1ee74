"""A bar of the chart of deliveries, and its row in the table, lead to the deliveries of it."""

import re
from datetime import datetime, timedelta
from html import unescape

import pytest

from cuepost.domain.attempt import Outcome
from cuepost.domain.delivery import DeliveryStatus as S
from tests.application.harness import Harness
from tests.interfaces.web.endpoints import LIST, created
from tests.interfaces.web.page_client import PageClient

BAR = re.compile(r'<a class="slot" href="([^"]+)".*?</tspan>: ([^<]+)</text>', re.DOTALL)
IN_TABLE = re.compile(r'<td data-label="From"><a href="([^"]+)"><time')
ROW = re.compile(r'<tr id="row-([^"]+)"')
RANGES = ("1h", "24h", "7d", "30d")
HINT = "also to those that have not ended"


def bars(page: str) -> dict[str, int]:
    """How many deliveries each linked bar shows."""
    return {
        unescape(path): sum(int(each) for each in re.findall(r"\d+", words))
        for path, words in BAR.findall(page)
    }


async def listed(page_client: PageClient, path: str) -> set[str]:
    return set(ROW.findall((await page_client.get(path)).text))


async def ended(harness: Harness, webhook_id: object, status: S = S.DELIVERED) -> str:
    delivery = await harness.complete_to(str(webhook_id))
    outcome = Outcome.DELIVERED if status is S.DELIVERED else Outcome.HTTP_ERROR
    await harness.record(delivery, status, outcome=outcome)
    return str(delivery.id)


def advance_to(harness: Harness, instant: datetime) -> None:
    harness.clock.advance(seconds=(instant - harness.clock.now()).total_seconds())


@pytest.mark.parametrize("span", RANGES)
async def test_the_list_has_the_deliveries_that_the_bar_counts(
    page_client: PageClient, span: str
) -> None:
    """Also of those in the last millisecond of an interval and in the first of the next one."""
    webhook_id, harness = await created(page_client), page_client.harness
    midnight = harness.clock.now().replace(hour=0, minute=0, second=0, microsecond=0)
    made = set()
    for status in (S.DELIVERED, S.FAILED):
        midnight += timedelta(days=1)
        advance_to(harness, midnight - timedelta(milliseconds=1))
        made.add(await ended(harness, webhook_id, status))
        advance_to(harness, midnight)
        made.add(await ended(harness, webhook_id))
    harness.clock.advance(minutes=6)
    newest = await ended(harness, webhook_id, S.FAILED)
    found = bars((await page_client.get(f"/settings?range={span}")).text)
    lists = {path: await listed(page_client, path) for path in found}
    assert {path: len(ids) for path, ids in lists.items()} == found
    together = [each for ids in lists.values() for each in ids]
    assert len(together) == len(set(together))
    assert newest in together
    assert set(together) <= made | {newest}
    if span in ("7d", "30d"):
        assert set(together) == made | {newest}


async def test_the_address_has_the_interval_in_utc(page_client: PageClient) -> None:
    webhook_id = await created(page_client)
    await ended(page_client.harness, webhook_id)
    page = (await page_client.get("/settings")).text
    path = "/settings/deliveries?since=2026-01-02T03%3A00&until=2026-01-02T04%3A00"
    assert bars(page) == {path: 1}
    assert [unescape(each) for each in IN_TABLE.findall(page)] == [path]


async def test_bars_of_an_endpoint_lead_to_its_own_deliveries(page_client: PageClient) -> None:
    harness = page_client.harness
    first, second = await created(page_client), (await harness.endpoint()).view.endpoint.id
    ids = {each: await ended(harness, each) for each in (first, second)}
    # An event has gone to the other endpoint as well, where it waits.
    for webhook_id, delivery_id in ids.items():
        page = (await page_client.get(f"{LIST}/{webhook_id}")).text
        [(path, count)] = bars(page).items()
        assert path.startswith(f"{LIST}/{webhook_id}/deliveries?since=")
        assert [unescape(each) for each in IN_TABLE.findall(page)] == [path]
        assert count == 1
        assert delivery_id in await listed(page_client, path)
        assert not await listed(page_client, path) & (set(ids.values()) - {delivery_id})


async def test_what_has_not_ended_is_listed_and_the_page_says_so(page_client: PageClient) -> None:
    webhook_id, harness = await created(page_client), page_client.harness
    done = await ended(harness, webhook_id)
    waiting = await harness.complete_to(str(webhook_id))
    page = (await page_client.get("/settings")).text
    assert HINT in page
    [(path, count)] = bars(page).items()
    assert count == 1
    assert await listed(page_client, path) == {done, str(waiting.id)}


async def test_a_bar_without_deliveries_is_no_link(page_client: PageClient) -> None:
    webhook_id, harness = await created(page_client), page_client.harness
    await ended(harness, webhook_id)
    page = (await page_client.get("/settings?range=24h")).text
    chart = page.partition('id="deliveries-title"')[2].partition("</svg>")[0]
    assert chart.count('class="slot"') == 24
    assert chart.count('<a class="slot"') == 1
    assert chart.count("<a ") == chart.count("</a>")
    harness.clock.advance(days=2)
    assert HINT not in (await page_client.get("/settings?range=24h")).text


async def test_points_of_latency_are_no_links(page_client: PageClient) -> None:
    await ended(page_client.harness, await created(page_client))
    page = (await page_client.get("/settings")).text
    chart = page.partition('id="latency-title"')[2].partition("</figure>")[0]
    assert 'class="slot" tabindex="0"' in chart
    assert "<a " not in chart
