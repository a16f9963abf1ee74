"""Every request has an id: in its answer, in a problem document, in the log."""

import logging

import anyio.lowlevel
import httpx2
import pytest
from prometheus_client import CollectorRegistry

from cuepost.bootstrap.log_formats import JsonLines
from cuepost.bootstrap.logs import QuickFormatter
from cuepost.interfaces.rest.app import create_health_app
from cuepost.interfaces.rest.observing import PROBLEM, RequestTelemetry, with_id
from cuepost.interfaces.rest.open_pages import HealthChecks
from cuepost.log_lines import REQUEST_ID
from cuepost.ports.store import StoreUnavailable
from cuepost.ports.system import Entropy
from cuepost.testing import RepeatableEntropy
from tests.application.harness import BASE_URL
from tests.interfaces.rest.client import Api, problem

PATHS = ("/v1/projects", "/v1/projects/nonsense", "/nothing", "/healthz", "/docs", "/llms.txt")


def id_of(answer: httpx2.Response) -> str:
    [found] = answer.headers.get_list("x-request-id")
    return str(found)


async def test_every_answer_has_an_id_of_its_own(sqlite_api: Api) -> None:
    answers = [await sqlite_api.call("GET", path) for path in PATHS * 2]
    assert len({id_of(answer) for answer in answers}) == len(answers)


async def test_a_problem_names_the_request_it_is_about(sqlite_api: Api) -> None:
    answer = await sqlite_api.call("GET", "/v1/projects/nonsense")
    assert problem(answer) == (404, "not_found")
    assert list(answer.json())[-1] == "requestId"


async def test_head_announces_the_length_that_get_has(sqlite_api: Api) -> None:
    given = {"X-Request-Id": "one"}
    whole = await sqlite_api.call("GET", "/v1/projects/nonsense", headers=given)
    head = await sqlite_api.call("HEAD", "/v1/projects/nonsense", headers=given)
    assert head.headers["content-length"] == str(len(whole.content))
    assert head.content == b""


async def test_a_repeated_refusal_names_the_request_that_repeats_it(sqlite_api: Api) -> None:
    project = await sqlite_api.harness.project()
    path, key = f"/v1/projects/{project.id}/export", {"Idempotency-Key": "k"}
    answers = [await sqlite_api.call("POST", path, headers=key) for _ in range(2)]
    assert [problem(each) for each in answers] == [(409, "illegal_transition")] * 2
    assert id_of(answers[0]) != id_of(answers[1])


@pytest.mark.parametrize("given", ["a", "7f3c-1", "req_1.2:3", "x" * 64])
async def test_an_id_that_came_with_the_request_is_kept(sqlite_api: Api, given: str) -> None:
    answer = await sqlite_api.call("GET", "/healthz", headers={"X-Request-Id": given})
    assert id_of(answer) == given


@pytest.mark.parametrize("given", ["", "two words", 'a"b', "a=b", "x" * 65, "ä", "a\tb", "a,b"])
async def test_anything_else_is_replaced(sqlite_api: Api, given: str) -> None:
    headers = [(b"x-request-id", given.encode())]
    answer = await sqlite_api.client.get("/healthz", headers=httpx2.Headers(headers))
    assert id_of(answer) not in {given, ""}


def worker(entropy: Entropy) -> httpx2.AsyncClient:
    async def well() -> None: ...

    registry = CollectorRegistry()
    app = create_health_app(HealthChecks(well), registry, RequestTelemetry(registry), entropy)
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url=BASE_URL)


async def test_ids_of_two_processes_differ() -> None:
    async with (
        worker(lambda count: b"\1" * count) as one,
        worker(lambda count: b"\2" * count) as two,
    ):
        answers = [await each.get("/healthz") for each in (one, one, two)]
    assert [id_of(each) for each in answers] == [
        "0101010101010101-1",
        "0101010101010101-2",
        "0202020202020202-1",
    ]


def test_a_problem_that_comes_in_pieces_is_left_as_it_is() -> None:
    head = {"type": "http.response.start", "status": 400, "headers": [PROBLEM]}
    piece = {"type": "http.response.body", "body": b"{", "more_body": True}
    assert with_id(head, piece, "one") == (head, piece)


async def test_what_is_logged_meanwhile_names_the_request(
    sqlite_api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also what is logged by code that knows nothing of requests; and nothing that comes later."""
    lines: list[str] = []
    shown: list[logging.Formatter] = [QuickFormatter(), JsonLines()]

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.extend(each.format(record) for each in shown)

    def away() -> None:
        raise StoreUnavailable("away")

    monkeypatch.setattr(sqlite_api.harness.store, "snapshot", away)
    logger, kept = logging.getLogger("cuepost.rest"), Kept()
    monkeypatch.setattr(logger, "handlers", [kept])
    answer = await sqlite_api.call("GET", "/readyz", headers={"X-Request-Id": "probe-1"})
    refused = await sqlite_api.call("GET", "/v1/projects", headers={"X-Request-Id": "call-1"})
    await anyio.lowlevel.checkpoint()
    assert (answer.status_code, refused.status_code) == (200, 503)
    text = "\n".join(lines)
    assert "event=store_unavailable operation=listProjects sqlstate=- error=away" in text
    assert "request=call-1" in text
    assert '"requestId": "call-1"' in text
    assert REQUEST_ID.get() == ""


async def test_a_worker_answers_with_ids_and_counts_requests_too() -> None:
    async with worker(RepeatableEntropy("ids")) as client:
        first, second = [await client.get(path) for path in ("/readyz", "/nothing")]
        start = RepeatableEntropy("ids")(8).hex()
        assert (id_of(first), id_of(second)) == (f"{start}-1", f"{start}-2")
        assert problem(second) == (404, "not_found")
        shown = (await client.get("/metrics")).text
    assert 'cuepost_http_requests_total{method="GET",operation="none",status="2xx"} 1.0' in shown
    assert "cuepost_build_info{" in shown
