"""The endpoint page with its tabs, and the page of a delivery: what is open, what is formatted."""

import re
from html import unescape

import pytest

from cuepost.domain.attempt import Outcome
from cuepost.domain.delivery import DeliveryStatus
from tests.interfaces.rest.client import attempt_of
from tests.interfaces.web.endpoints import LIST, URL, create, created, endpoints_of
from tests.interfaces.web.page_client import PageClient

TABS = {
    "Overview": "",
    "Deliveries": "/deliveries",
    "Secret": "/secret",
    "Settings": "/edit",
    "Danger zone": "/delete",
}
TAB = re.compile(r'<li><a href="([^"]+)" (aria-current="page")?>([^<]+)</a></li>')


@pytest.mark.parametrize("name", TABS)
async def test_each_tab_is_an_address_that_names_all_of_them(
    page_client: PageClient, name: str
) -> None:
    here = f"{LIST}/{await created(page_client)}"
    page = (await page_client.get(here + TABS[name])).text
    tabs = page.partition('<nav class="tabs"')[2].partition("</nav>")[0]
    found = {label: (path, bool(current)) for path, current, label in TAB.findall(tabs)}
    assert found == {label: (here + path, label == name) for label, path in TABS.items()}


async def test_the_name_is_beside_the_url_whose_host_stands_out(page_client: PageClient) -> None:
    await create(page_client, description="Production <1>")
    [view] = await endpoints_of(page_client)
    shown = (
        '<span class="dim">https://</span><strong>hooks.example.com</strong>'
        '<span class="dim">/cue</span>'
    )
    page = (await page_client.get(f"{LIST}/{view.endpoint.id}")).text
    assert ">Production &lt;1&gt;</h1>" in page
    assert f'<p class="url" title="{URL}">{shown}</p>' in page
    listed = (await page_client.get(LIST)).text
    assert f'<a href="{LIST}/{view.endpoint.id}">Production &lt;1&gt;</a>' in listed
    assert f'<p class="url" title="{URL}">{shown}</p>' in listed


async def test_an_endpoint_without_a_name_is_called_by_its_url(page_client: PageClient) -> None:
    here = f"{LIST}/{await created(page_client)}"
    page = (await page_client.get(here)).text
    assert re.search(
        rf'<h1 class="url clamp" title="{URL}"><span class="dim">https://</span><strong>', page
    )


async def test_the_secret_is_on_its_own_tab_only(page_client: PageClient) -> None:
    here = f"{LIST}/{await created(page_client)}"
    assert "<h2>Signing secret</h2>" in (await page_client.get(f"{here}/secret")).text
    assert "Signing secret" not in (await page_client.get(here)).text


async def page_of_attempts(page_client: PageClient, *outcomes: Outcome) -> str:
    webhook_id, harness = await created(page_client), page_client.harness
    delivery = await harness.complete()
    made = [
        attempt_of(
            delivery,
            number=number,
            started_at=harness.clock.now(),
            outcome=outcome,
            response_status=200 if outcome is Outcome.DELIVERED else 500,
            response_body=b'{"error":"<b>"}',
        )
        for number, outcome in enumerate(outcomes, start=1)
    ]
    await harness.do(lambda transaction: transaction.attempts.add(made))
    await harness.count_attempts(delivery, len(made))
    await harness.end(delivery, DeliveryStatus.FAILED)
    return (await page_client.get(f"{LIST}/{webhook_id}/deliveries/{delivery.id}")).text


async def test_the_response_is_open_where_the_attempt_failed(page_client: PageClient) -> None:
    page = await page_of_attempts(page_client, Outcome.DELIVERED, Outcome.HTTP_ERROR)
    responses = re.findall(r'<details (open)? class="response"><summary>Response (\d+)', page)
    assert responses == [("open", "500"), ("", "200")]


async def test_bodies_are_formatted_and_can_be_copied_as_they_were_sent(
    page_client: PageClient,
) -> None:
    page = await page_of_attempts(page_client, Outcome.HTTP_ERROR)
    [event] = await page_client.harness.events()
    assert f'<code id="event-body">{event.body.decode()}</code>' in unescape(page)
    assert 'data-copy="event-body"' in page
    assert '  <span class="json-key">&#34;type&#34;</span>: <span class="json-text">' in page
    assert '<span class="json-text">&#34;&lt;b&gt;&#34;</span>' in page
    assert 'data-copy="response-1-1"' in page
    assert 'id="response-1-1">{&#34;error&#34;:&#34;&lt;b&gt;&#34;}</code>' in page
    [delivery] = await page_client.harness.deliveries()
    assert f'<a href="/settings/projects/{delivery.project_id}">Trailer</a>' in page
    for target in ("event-id", "delivery-id", "project-id"):
        assert f'<code id="{target}">' in page
        assert f'data-copy="{target}"' in page
