"""Presets, chips and the search box of the lists, without JavaScript."""

import re
from html import unescape
from urllib.parse import quote
from uuid import UUID

import pytest

from cuepost.application import browse_history
from cuepost.domain.delivery import DeliveryStatus
from tests.interfaces.web.endpoints import LIST, create, created, endpoints_of
from tests.interfaces.web.page_client import PageClient

ALL = "/settings/deliveries"
PRESET = re.compile(r'<li><a href="([^"]+)" (aria-current="true")?>([^<]+)</a></li>')
CHIP = re.compile(r'<li class="chip"><span class="clip">(.*?)</span><a href="([^"]+)"', re.DOTALL)


def presets(page: str) -> dict[str, tuple[str, bool]]:
    inside = page.partition('<nav class="presets"')[2].partition("</nav>")[0]
    return {label: (unescape(path), bool(is_set)) for path, is_set, label in PRESET.findall(inside)}


def chips(page: str) -> dict[str, str]:
    return {
        unescape(re.sub(r"<[^>]+>", "", label)): unescape(path)
        for label, path in CHIP.findall(page)
    }


def rows(page: str) -> set[str]:
    return set(re.findall(r'<tr id="row-([^"]+)"', page))


async def test_a_preset_sets_a_filter_and_takes_it_away_again(page_client: PageClient) -> None:
    await created(page_client)
    old = await page_client.harness.complete()
    await page_client.harness.end(old, DeliveryStatus.FAILED)
    page_client.harness.clock.advance(hours=2)
    new = await page_client.harness.complete()
    page = (await page_client.get(ALL)).text
    assert (rows(page), chips(page)) == ({str(old.id), str(new.id)}, {})
    assert list(presets(page)) == [
        *("Last hour", "Last 24 hours", "Last 7 days"),
        *("Failed", "Retrying", "Pending", "Delivered", "Cancelled"),
    ]
    path, is_set = presets(page)["Last hour"]
    assert (path, is_set) == (f"{ALL}?range=1h", False)
    page = (await page_client.get(path)).text
    assert rows(page) == {str(new.id)}
    assert presets(page)["Last hour"] == (ALL, True)
    assert presets(page)["Last 7 days"] == (f"{ALL}?range=7d", False)
    page = (await page_client.get(presets(page)["Failed"][0])).text
    assert (rows(page), chips(page)) == (
        set(),
        {"Last hour": f"{ALL}?status=failed", "Status: failed": f"{ALL}?range=1h"},
    )


async def test_each_filter_is_a_chip_with_a_name_that_removes_it(page_client: PageClient) -> None:
    await create(page_client, description="Production")
    [view] = await endpoints_of(page_client)
    delivery = await page_client.harness.complete()
    assert delivery.project_id is not None
    project = await page_client.harness.stored(
        await page_client.harness.see(
            page_client.harness.service.projects.get,
            page_client.harness.owner,
            delivery.project_id,
        )
    )
    query = {
        "status": ("failed", "Status: failed"),
        "outcome": ("http_error", "Outcome: http error"),
        "class": ("4xx", "HTTP status: 4xx"),
        "endpoint": (str(view.endpoint.id), "Endpoint: Production"),
        "project": (str(project.id), f"Project: {project.name}"),
        "since": ("2026-01-02T03:04", "Since: 2026-01-02 03:04:00"),
    }
    address = "&".join(f"{name}={quote(text)}" for name, (text, _) in query.items())
    found = chips((await page_client.get(f"{ALL}?{address}&type=nonsense&range=1h")).text)
    assert list(found) == [label for _, label in query.values()]
    for name, (_, label) in query.items():
        assert f"{name}=" not in found[label]
        assert found[label].count("=") == len(query) - 1


async def test_a_time_of_the_address_is_shown_in_its_field_in_utc(page_client: PageClient) -> None:
    page = (await page_client.get(f"{ALL}?since=2026-01-02T05:04%2B02:00")).text
    assert 'name="since" data-utc value="2026-01-02T03:04"' in page
    page = (await page_client.get(f"{ALL}?range=1h")).text
    assert 'name="since" data-utc value=""' in page


async def test_events_have_presets_and_chips_as_well(page_client: PageClient) -> None:
    page = (await page_client.get("/settings/events?range=24h&type=project.ready")).text
    assert presets(page)["Last 24 hours"] == ("/settings/events?type=project.ready", True)
    assert chips(page) == {
        "Event: project.ready": "/settings/events?range=24h",
        "Last 24 hours": "/settings/events?type=project.ready",
    }


async def named(page_client: PageClient, *names: str) -> list[UUID]:
    made = [await page_client.harness.project(name=name) for name in names]
    return [each.id for each in made]


@pytest.mark.parametrize("text", ["harbour", " HARBOUR at ", "Harbour at dawn"])
async def test_a_project_is_found_by_a_part_of_its_name(page_client: PageClient, text: str) -> None:
    harbour, _ = await named(page_client, "Harbour at dawn", "Forest")
    answer = await page_client.get(f"{ALL}?q={quote(text)}")
    assert (answer.status_code, answer.headers["location"]) == (303, f"{ALL}?project={harbour}")


async def test_an_endpoint_is_found_by_its_url_or_its_name(page_client: PageClient) -> None:
    await create(page_client, description="Production")
    [view] = await endpoints_of(page_client)
    for text in ("hooks.EXAMPLE", "https://hooks.example.com/cue", "product"):
        answer = await page_client.get(f"{ALL}?q={quote(text, safe='')}")
        assert answer.headers["location"] == f"{LIST}/{view.endpoint.id}/deliveries", text


async def test_the_beginning_of_a_name_is_found_among_all_projects(
    page_client: PageClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browse_history, "NAMES_SEARCHED", 2)
    oldest, *_ = await named(page_client, "Harbour", "Old harbour", "Forest", "Lake")
    assert (await page_client.get(f"{ALL}?q=HARB")).headers["location"] == (
        f"{ALL}?project={oldest}"
    )
    page = await page_client.get(f"{ALL}?q=old harbour x")
    assert "no project has a name that begins with it" in page.text


async def test_several_results_are_listed(page_client: PageClient) -> None:
    webhook_id = await created(page_client)
    first, second, _ = await named(page_client, "Hooks <1>", "More hooks", "Forest")
    page = (await page_client.get(f"{ALL}?q=hooks")).text
    found = re.findall(r'<li class="line"><a href="([^"]+)"', page)
    assert found == [
        f"{LIST}/{webhook_id}/deliveries",
        # A name that begins with it comes before one that only contains it.
        f"{ALL}?project={first}",
        f"{ALL}?project={second}",
    ]
    assert "Hooks &lt;1&gt;" in page
    assert 'name="q" value="hooks"' in page


async def test_nothing_of_another_account_is_found(page_client: PageClient) -> None:
    await created(page_client)
    await named(page_client, "Harbour")
    other = await page_client.another().sign_in(await page_client.harness.new_owner())
    for text in ("harbour", "hooks.example.com"):
        answer = await other.get(f"{ALL}?q={text}")
        assert (answer.status_code, "No results" in answer.text) == (200, True)


async def test_a_deleted_project_is_not_found_by_its_name(page_client: PageClient) -> None:
    [harbour] = await named(page_client, "Harbour")
    harness = page_client.harness
    await harness.do(harness.service.projects.delete, harness.owner, harbour)
    assert "No results" in (await page_client.get(f"{ALL}?q=harbour")).text


async def test_names_are_looked_up_among_the_newest_only(
    page_client: PageClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many projects there are, a search reads a bounded number of them."""
    monkeypatch.setattr("cuepost.application.browse_history.NAMES_SEARCHED", 2)
    await named(page_client, "Oldest harbour", "Forest", "Lake")
    assert "No results" in (await page_client.get(f"{ALL}?q=harbour")).text
    assert (await page_client.get(f"{ALL}?q=forest")).status_code == 303
