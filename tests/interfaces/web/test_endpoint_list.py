"""The list of endpoints: search and order, without JavaScript."""

import re
from dataclasses import replace
from datetime import timedelta
from html import unescape
from typing import Any

import pytest

from cuepost.interfaces.web import endpoints
from cuepost.ports.records import Page
from tests.application.harness import Harness
from tests.interfaces.web.endpoints import LIST, create
from tests.interfaces.web.page_client import RULES, PageClient, opened

TITLE = re.compile(r'<p class="card-title"><a href="/settings/webhooks/([^"]+)">(.*?)</a>')
NAMES = ("Zebra", "apple", "Mango", "Äpfel", "Kiwi", "Billing")
SHOW_ALL = re.compile(r'<a href="([^"]+)">Show all endpoints</a>')


@pytest.fixture
async def owner(harness: Harness) -> PageClient:
    """Signed in to an account that has an endpoint of each name, the last one the newest."""
    client = opened(harness, replace(RULES, endpoint_limit=20))
    for name in NAMES:
        harness.clock.advance(1)
        url = f"https://{'hooks' if name == 'Kiwi' else 'other'}.example.com/{len(name)}"
        await harness.do(client.harness.service.webhooks.create, harness.owner, url, [], name)
    return await client.sign_in()


def shown(page: str) -> list[str]:
    return [unescape(name) for _, name in TITLE.findall(page)]


def ids(page: str) -> dict[str, str]:
    return {unescape(name): webhook_id for webhook_id, name in TITLE.findall(page)}


async def test_without_a_choice_the_newest_is_first(owner: PageClient) -> None:
    page = (await owner.get(LIST)).text
    assert shown(page) == list(NAMES[::-1])
    assert "endpoints match" not in page


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("apple", ["apple"]),
        ("ÄPFEL", ["Äpfel"]),
        ("HOOKS.example", ["Kiwi"]),
        ("com/7", ["Billing"]),
        ("%", []),
    ],
)
async def test_a_text_is_searched_in_names_hosts_and_urls(
    owner: PageClient, text: str, found: list[str]
) -> None:
    page = (await owner.get(LIST, params={"q": text})).text
    assert shown(page) == found
    assert f'value="{text}"' in page


async def test_an_endpoint_is_found_by_a_part_of_its_id(owner: PageClient) -> None:
    known = ids((await owner.get(LIST)).text)
    for text in (known["Mango"], known["Mango"].upper()[9:]):
        assert shown((await owner.get(LIST, params={"q": text})).text) == ["Mango"]


async def change(owner: PageClient, name: str, **fields: Any) -> None:
    """Sets what an endpoint remembers of its attempts."""
    harness = owner.harness
    views = await harness.see(harness.service.webhooks.page, harness.owner, Page(20))
    [endpoint] = [view.endpoint for view in views if view.endpoint.description == name]
    await harness.do(lambda transaction: transaction.endpoints.save(replace(endpoint, **fields)))


async def test_the_orders_of_the_list(owner: PageClient) -> None:
    now = owner.harness.clock.now()
    await change(owner, "Zebra", last_delivered_at=now)
    await change(owner, "Mango", last_delivered_at=now + timedelta(seconds=1))
    await change(owner, "Billing", enabled=False)
    await change(owner, "apple", failing_since=now, troubled_since=now)
    orders = {
        "name": ["apple", "Billing", "Kiwi", "Mango", "Zebra", "Äpfel"],
        "delivery": ["Mango", "Zebra", "Billing", "Kiwi", "Äpfel", "apple"],
        "health": ["apple", "Kiwi", "Äpfel", "Mango", "Zebra", "Billing"],
        "nonsense": list(NAMES[::-1]),
    }
    for order, expected in orders.items():
        page = (await owner.get(f"{LIST}?order={order}")).text
        assert shown(page) == expected, order
        assert f'value="{order}" selected' in page or order == "nonsense"


async def test_text_and_order_are_combined_and_stay_in_the_form(owner: PageClient) -> None:
    page = (await owner.get(f"{LIST}?q=other&order=name")).text
    assert shown(page) == ["apple", "Billing", "Mango", "Zebra", "Äpfel"]
    assert "5 of 6 endpoints match." in page
    assert 'value="other"' in page
    assert 'value="name" selected' in page


async def test_without_a_match_there_is_a_way_back(owner: PageClient) -> None:
    page = (await owner.get(LIST, params={"q": "<b>", "order": "name"})).text
    assert "No endpoint matches" in page
    assert "<b>" not in page
    [back] = SHOW_ALL.findall(page)
    assert back == f"{LIST}?order=name"
    assert len(shown((await owner.get(back)).text)) == len(NAMES)
    page = (await owner.get(f"{LIST}?q=nothing")).text
    assert SHOW_ALL.findall(page) == [LIST]


async def test_a_handful_of_endpoints_needs_no_search(page_client: PageClient) -> None:
    await create(page_client, description="Production")
    assert 'name="q"' not in (await page_client.get(LIST)).text
    # An address that someone was sent works all the same.
    page = (await page_client.get(f"{LIST}?q=nothing")).text
    assert 'name="q"' in page
    assert "No endpoint matches" in page
    assert "Add endpoint" in page


async def test_of_many_endpoints_the_first_are_shown_and_all_are_searched(
    owner: PageClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoints, "MOST_SHOWN", 2)
    page = (await owner.get(f"{LIST}?order=name")).text
    assert shown(page) == ["apple", "Billing"]
    assert "The first 2 of 6 are shown; search for the others." in page
    assert shown((await owner.get(f"{LIST}?q=zebra")).text) == ["Zebra"]


async def test_the_page_says_if_older_endpoints_are_not_searched(
    owner: PageClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    warning = "Only the newest 6 endpoints are searched and listed"
    assert warning not in (await owner.get(LIST)).text
    monkeypatch.setattr(endpoints, "MOST_SEARCHED", len(NAMES))
    assert warning in (await owner.get(LIST)).text
