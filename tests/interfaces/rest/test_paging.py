from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from cuepost.domain.project import ProjectStatus
from cuepost.interfaces.wire_models.paging import cursor_of, id_in
from tests.interfaces.rest.client import URL, Api

Make = Callable[[Api], Awaitable[None]]


async def make_project(api: Api) -> None:
    await api.harness.project(ProjectStatus.QUEUED)


async def make_delivery(api: Api) -> None:
    if not (await api.stored())["endpoints"]:
        await api.harness.endpoint()
    await api.harness.complete()


async def make_entry(api: Api) -> None:
    if not (await api.stored())["endpoints"]:
        await api.harness.endpoint()
    [endpoint] = (await api.stored())["endpoints"]
    await api.done("POST", f"/v1/webhooks/{endpoint.id}/test")


async def make_webhook(api: Api) -> None:
    await api.done("POST", "/v1/webhooks", {"url": URL})


LISTS: list[tuple[str, Make]] = [
    ("/v1/projects", make_project),
    ("/v1/deliveries", make_delivery),
    ("/v1/events", make_delivery),
    ("/v1/audit", make_entry),
]


async def walk(
    api: Api, path: str, limit: int, between: Make | None = None, **chosen: str
) -> list[str]:
    """All ids of a list, page by page."""
    seen: list[str] = []
    query: dict[str, Any] = {"limit": limit, **chosen}
    while True:
        page = await api.done("GET", path, params=query)
        assert len(page["data"]) <= limit
        seen += [each["id"] for each in page["data"]]
        if page["nextCursor"] is None:
            return seen
        assert len(page["data"]) == limit
        query["cursor"] = page["nextCursor"]
        if between is not None:
            await between(api)


@pytest.mark.parametrize(("path", "make"), LISTS)
async def test_pages_have_neither_gaps_nor_doubles_while_new_things_arrive(
    api: Api, path: str, make: Make
) -> None:
    for _ in range(7):
        await make(api)
        api.harness.clock.advance(1)
    whole = [each["id"] for each in (await api.done("GET", path, params={"limit": 100}))["data"]]
    assert whole == sorted(whole, reverse=True)
    for limit in (1, 2, 3, 7, 100):
        assert await walk(api, path, limit) == whole
    assert await walk(api, path, 2, between=make) == whole


async def test_a_filter_holds_over_all_pages(api: Api) -> None:
    await api.harness.endpoint("project.completed", "project.ready")
    for place in range(6):
        await api.harness.complete()
        if place % 2:
            project = await api.harness.project(ProjectStatus.PROCESSING)
            await api.harness.report(api.harness.milestone(project, "ready"))
    assert len(await walk(api, "/v1/deliveries", 2, type="project.ready")) == 3
    assert len(await walk(api, "/v1/deliveries", 2)) == 9


async def test_endpoints_are_paged_too(api: Api) -> None:
    for _ in range(5):
        await make_webhook(api)
    assert len(await walk(api, "/v1/webhooks", 2)) == 5


async def test_a_page_has_twenty_things_unless_told_otherwise(api: Api) -> None:
    for _ in range(21):
        await make_project(api)
    page = await api.done("GET", "/v1/projects")
    assert len(page["data"]) == 20
    assert page["nextCursor"] == cursor_of(id_in(page["nextCursor"]))
    assert str(id_in(page["nextCursor"])) == page["data"][-1]["id"]


async def test_a_last_page_that_is_full_has_no_next_one(api: Api) -> None:
    for _ in range(2):
        await make_project(api)
    page = await api.done("GET", "/v1/projects", params={"limit": 2})
    assert (len(page["data"]), page["nextCursor"]) == (2, None)


async def test_a_cursor_is_bound_to_no_list_and_finds_its_place(api: Api) -> None:
    await make_project(api)
    api.harness.clock.advance(1)
    await make_delivery(api)
    [delivery] = (await api.done("GET", "/v1/deliveries"))["data"]
    query = {"cursor": cursor_of(api.harness.ids(api.harness.clock.now()))}
    assert (await api.done("GET", "/v1/deliveries", params=query))["data"] == [delivery]
    query = {"cursor": "AAAAAAAAAAAAAAAAAAAAAA"}
    assert (await api.done("GET", "/v1/deliveries", params=query))["data"] == []
