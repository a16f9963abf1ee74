import logging
import re
from html.parser import HTMLParser

import anyio.lowlevel
import httpx2
import pytest
from prometheus_client import CollectorRegistry, Counter
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from cuepost import __version__
from cuepost.domain.event_catalog import CATALOG
from cuepost.interfaces.rest.app import create_app
from cuepost.interfaces.rest.open_pages import HealthChecks
from cuepost.interfaces.rest.table import OPERATIONS
from cuepost.ports.store import StoreUnavailable
from tests.application.harness import BASE_URL, Harness
from tests.interfaces.rest.client import Api, problem


async def ready(harness: Harness, health: HealthChecks) -> httpx2.Response:
    app = create_app(harness.service, base_url=BASE_URL, health=health)
    transport = httpx2.ASGITransport(app)
    async with httpx2.AsyncClient(transport=transport, base_url=BASE_URL) as client:
        return await client.get("/readyz")


async def test_a_living_process_says_so_without_a_key(api: Api) -> None:
    answer = await api.call("GET", "/healthz", key="")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


async def test_a_process_is_ready_when_every_check_is_well(api: Api) -> None:
    answer = await api.call("GET", "/readyz", key="")
    assert answer.status_code == 200
    assert answer.json() == {"status": "ready", "checks": {"store": "ok", "dispatcher": "ok"}}


async def test_a_process_without_a_dispatcher_is_not_asked_for_one(sqlite_harness: Harness) -> None:
    answer = await ready(sqlite_harness, HealthChecks(sqlite_harness.store.check))
    assert answer.json() == {"status": "ready", "checks": {"store": "ok"}}


@pytest.mark.parametrize("error", [StoreUnavailable("the host"), RuntimeError("a bug")])
async def test_what_is_not_well_is_named(sqlite_harness: Harness, error: Exception) -> None:
    async def unreachable() -> None:
        raise error

    answer = await ready(
        sqlite_harness, HealthChecks(unreachable, lambda: "stalled: results are not recorded")
    )
    assert answer.status_code == 503
    assert answer.json() == {
        "status": "not_ready",
        "checks": {"store": "unavailable", "dispatcher": "stalled: results are not recorded"},
    }


async def test_metrics_count_requests_by_call_and_kind_of_status(sqlite_api: Api) -> None:
    await sqlite_api.done("GET", "/v1/projects")
    await sqlite_api.call("GET", "/v1/projects/nonsense")
    await sqlite_api.call("BREW", "/v1/coffee")
    answer = await sqlite_api.call("GET", "/metrics", key="")
    assert answer.headers["content-type"].startswith("text/plain")
    for line in (
        'cuepost_http_requests_total{method="GET",operation="listProjects",status="2xx"} 1.0',
        'cuepost_http_requests_total{method="GET",operation="getProject",status="4xx"} 1.0',
        'cuepost_http_requests_total{method="other",operation="none",status="4xx"} 1.0',
        'cuepost_http_request_seconds_count{operation="listProjects"} 1.0',
        f'cuepost_build_info{{version="{__version__}"}} 1.0',
    ):
        assert line in answer.text.splitlines()
    assert str(sqlite_api.harness.account.id) not in answer.text


async def test_a_request_leaves_one_log_line(
    sqlite_api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "cuepost.rest"):
        first = await sqlite_api.call("GET", "/v1/projects/nonsense?cursor=hidden")
        second = await sqlite_api.call("GET", "/nothing/here", key="")
        await anyio.lowlevel.checkpoint()
    key_id = sqlite_api.owner[4:36]
    logged = [line for record in caplog.records for line in record.getMessage().split("\n")]
    lines = [re.sub(r"ms=[\d.]+", "ms=0", line) for line in logged]
    actor = f"key:{key_id[:8]}-{key_id[8:12]}-{key_id[12:16]}-{key_id[16:20]}-{key_id[20:]}"
    one, two = first.headers["x-request-id"], second.headers["x-request-id"]
    found = f"method=GET status=404 ms=0 caller={actor} client=192.0.2.7 request={one}"
    assert lines == [
        f"event=request operation=getProject {found}",
        (
            "event=request operation=none method=GET status=404 ms=0 caller=- "
            f"client=192.0.2.7 request={two}"
        ),
    ]


async def test_other_interfaces_and_their_metrics_find_a_place(sqlite_harness: Harness) -> None:
    registry = CollectorRegistry()
    Counter("deliveries", "Made elsewhere.", registry=registry).inc()
    app = create_app(
        sqlite_harness.service,
        base_url=BASE_URL + "/",
        health=HealthChecks(sqlite_harness.store.check),
        registry=registry,
        further_routes=[
            Route("/pages", lambda request: PlainTextResponse("a page")),
            Route("/broken", lambda request: 1 / 0),
        ],
    )
    transport = httpx2.ASGITransport(app)
    async with httpx2.AsyncClient(transport=transport, base_url=BASE_URL) as client:
        assert (await client.get("/pages")).text == "a page"
        assert "deliveries_total 1.0" in (await client.get("/metrics")).text
        assert (await client.get("/openapi.json")).json()["servers"] == [{"url": BASE_URL}]
        with pytest.raises(ZeroDivisionError):
            await client.get("/broken")
        broken = 'cuepost_http_requests_total{method="GET",operation="none",status="5xx"} 1.0'
        assert broken in (await client.get("/metrics")).text


async def test_metrics_that_need_the_store_are_read_before_each_scrape(
    sqlite_harness: Harness,
) -> None:
    registry = CollectorRegistry()
    backlog = Counter("backlog", "Read from the store.", registry=registry)

    async def refresh() -> None:
        backlog.inc()

    health = HealthChecks(sqlite_harness.store.check, refresh_metrics=refresh)
    app = create_app(sqlite_harness.service, base_url=BASE_URL, health=health, registry=registry)
    transport = httpx2.ASGITransport(app)
    async with httpx2.AsyncClient(transport=transport, base_url=BASE_URL) as client:
        await client.get("/healthz")
        for scrape in (1, 2):
            assert f"backlog_total {scrape}.0" in (await client.get("/metrics")).text


async def test_a_call_without_path_parameters_is_found_without_the_router(
    sqlite_api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Starlette, "__call__", None)
    answer = await sqlite_api.call("POST", "/v1/milestones", {}, key=sqlite_api.pipeline)
    assert problem(answer) == (422, "missing_field")
    with pytest.raises(TypeError):
        await sqlite_api.call("GET", "/v1/projects/nonsense")


@pytest.mark.parametrize(
    "path", ["/healthz", "/readyz", "/metrics", "/openapi.json", "/docs", "/docs.css"]
)
async def test_open_pages_answer_to_get_and_head_alone(sqlite_api: Api, path: str) -> None:
    head = await sqlite_api.call("HEAD", path, key="")
    assert (head.status_code, head.content) == (200, b"")
    refused = await sqlite_api.call("POST", path, key="")
    assert problem(refused) == (405, "method_not_allowed")
    assert set(refused.headers["allow"].split(", ")) == {"GET", "HEAD"}


@pytest.mark.parametrize(
    "path", ["/healthz", "/docs", "/v1/projects", "/v1/nothing", "/openapi.json"]
)
async def test_browsers_are_told_to_be_careful(sqlite_api: Api, path: str) -> None:
    headers = (await sqlite_api.call("GET", path)).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert headers["content-security-policy"].startswith("default-src 'none';")
    assert "frame-ancestors 'none'" in headers["content-security-policy"]


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in {"href", "src"}:
                self.links.append(value or "")
            assert name != "style"
            assert not name.startswith("on")

    def handle_data(self, data: str) -> None:
        self.words += data


@pytest.fixture
async def docs(sqlite_api: Api) -> Page:
    answer = await sqlite_api.call("GET", "/docs", key="")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    return Page(answer.text)


async def test_the_page_shows_every_call_and_every_event(docs: Page) -> None:
    for operation in OPERATIONS:
        assert operation.name in docs.ids
        for shown in (operation.summary, operation.path, f"Needs the scope {operation.scope}."):
            assert shown in docs.words
    for entry in CATALOG:
        assert f"event-{entry.name}" in docs.ids
        assert entry.meaning in docs.words


async def test_the_page_is_whole_without_scripts_or_other_hosts(docs: Page) -> None:
    assert not {"script", "style", "iframe", "img"} & set(docs.tags)
    assert len(set(docs.ids)) == len(docs.ids)
    for link in docs.links:
        assert link in {"/docs.css", "/openapi.json"} or link.removeprefix("#") in docs.ids


async def test_the_page_has_a_stylesheet_for_light_and_dark(sqlite_api: Api) -> None:
    answer = await sqlite_api.call("GET", "/docs.css", key="")
    assert answer.headers["content-type"] == "text/css; charset=utf-8"
    assert "prefers-color-scheme: dark" in answer.text
    assert "url(" not in answer.text
