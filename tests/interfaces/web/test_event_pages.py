"""Events in the pages: all that happened, also what no one was sent, with the verdicts."""

import re
from html import unescape

from tests.interfaces.web.endpoints import LIST, create, created
from tests.interfaces.web.page_client import PageClient

EVENTS = "/settings/events"


async def test_an_event_shows_its_body_and_what_became_of_it_at_each_endpoint(
    page_client: PageClient,
) -> None:
    webhook_id = await created(page_client)
    delivery = await page_client.harness.complete()
    [event] = await page_client.harness.events()
    listed = (await page_client.get(EVENTS)).text
    assert f'href="{EVENTS}/{event.id}"' in listed
    assert "pill-pending" in listed
    page = unescape((await page_client.get(f"{EVENTS}/{event.id}")).text)
    assert f'<code id="event-body">{event.body.decode()}</code>' in page
    assert f'href="{LIST}/{webhook_id}/deliveries/{delivery.id}"' in page
    assert f'href="/settings/projects/{event.project_id}"' in page


async def test_rows_name_the_endpoint_and_the_project_instead_of_their_ids(
    page_client: PageClient,
) -> None:
    await create(page_client, description="Production")
    harness = page_client.harness
    delivery = await harness.complete(await harness.project(name="Harbour <1>"))
    assert delivery.project_id is not None
    project = f"/settings/projects/{delivery.project_id}"
    name = 'class="clamp">Harbour &lt;1&gt;</a>'
    assert name in (await page_client.get(EVENTS)).text
    for path in (f"{EVENTS}/{delivery.event_id}", project):
        assert "/deliveries/" in (page := (await page_client.get(path)).text)
        assert ">to Production</span>" in page, path
    assert f'href="{project}">Harbour &lt;1&gt;</a>' in (
        (await page_client.get(f"{EVENTS}/{delivery.event_id}")).text
    )
    listed = (await page_client.get("/settings/deliveries")).text
    assert 'title="https://hooks.example.com/cue"><span class="clamp">Production</span>' in listed


async def test_an_event_without_deliveries_says_why(page_client: PageClient) -> None:
    await page_client.harness.report(
        page_client.harness.milestone(await page_client.harness.project())
    )
    [event] = await page_client.harness.events()
    assert "sent to no one: not subscribed" in (await page_client.get(EVENTS)).text
    page = unescape((await page_client.get(f"{EVENTS}/{event.id}")).text)
    assert "no endpoint was subscribed to it when it happened" in page


async def test_events_are_filtered_in_the_address_and_paged(page_client: PageClient) -> None:
    harness = page_client.harness
    await harness.report(harness.milestone(await harness.project(), "failed"))
    await harness.report(*[harness.milestone(await harness.project()) for _ in range(21)])
    failed, first, *_ = sorted(await harness.events(), key=lambda event: event.id)

    async def shown(query: str) -> str:
        return (await page_client.get(f"{EVENTS}?{query}")).text

    only_failed = await shown("type=project.failed")
    assert str(failed.id) in only_failed
    assert str(first.id) not in only_failed
    assert str(first.id) in await shown(f"project={first.project_id}")
    assert "No events match these filters" in await shown("since=2030-01-01T00:00")
    newest = await shown("type=project.completed")
    assert str(first.id) not in newest
    older = re.search(r'href="([^"]+before=[^"]+)"', newest)
    assert older is not None
    assert str(first.id) in (await page_client.get(unescape(older[1]))).text


async def test_without_events_the_page_says_when_one_appears(page_client: PageClient) -> None:
    assert "No events yet" in (await page_client.get(EVENTS)).text
