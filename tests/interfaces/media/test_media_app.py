"""`/media/<token>`: what a browser, curl or a receiver gets from a download link."""

import logging
from email.utils import parsedate_to_datetime
from io import BytesIO
from typing import Any

import anyio.lowlevel
import httpx2
import pytest

from tests.application.harness import BASE_URL
from tests.interfaces.rest.client import Api, problem

CONTENT = bytes(range(256)) * 4
INERT = {
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; sandbox; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
}


async def link_of(api: Api, content: bytes = CONTENT, **more: Any) -> tuple[str, str]:
    """The id of a project with one file, and a link to that."""
    project = await api.harness.project()
    chosen: dict[str, Any] = {"kind": "video", "name": "trailer.mp4", "content_type": "video/mp4"}
    artifact = await api.harness.service.media.put(
        project.id, BytesIO(content), len(content), **(chosen | more)
    )
    await api.harness.report(api.harness.milestone(project, artifacts=(artifact,)))
    result = await api.done("GET", f"/v1/projects/{project.id}/result")
    [link] = result["links"]
    return str(project.id), str(link["url"])


async def asked(api: Api, link: str, method: str = "GET", **headers: str) -> httpx2.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await api.call(method, link, key="", headers=named)


def shown(answer: httpx2.Response, *names: str) -> dict[str, str]:
    return {name: answer.headers[name] for name in names}


async def test_the_result_has_a_link_to_each_file(api: Api) -> None:
    project_id, link = await link_of(api)
    assert await api.done("GET", f"/v1/projects/{project_id}/result") == {
        "projectId": project_id,
        "status": "completed",
        "stage": "export",
        "links": [
            {
                "kind": "video",
                "name": "trailer.mp4",
                "url": link,
                "contentType": "video/mp4",
                "sizeBytes": 1024,
                "expiresAt": "2026-01-02T03:19:05.678Z",
            }
        ],
        "exportedAt": "2026-01-02T03:04:05.678Z",
        "accessExpiresAt": None,
    }
    assert link.startswith(f"{BASE_URL}/media/")


async def test_a_link_gives_the_file_without_a_key(api: Api) -> None:
    _, link = await link_of(api)
    answer = await asked(api, link)
    assert (answer.status_code, answer.content) == (200, CONTENT)
    assert shown(answer, "content-length", "content-type", "content-disposition") == {
        "content-length": "1024",
        "content-type": "video/mp4",
        "content-disposition": 'attachment; filename="trailer.mp4"',
    }
    assert shown(answer, "accept-ranges", "cache-control", *INERT) == INERT | {
        "accept-ranges": "bytes",
        "cache-control": "private, no-cache",
    }
    assert parsedate_to_datetime(answer.headers["last-modified"]) <= api.harness.clock.now()


async def test_the_file_is_saved_under_its_own_name(sqlite_api: Api) -> None:
    _, link = await link_of(sqlite_api, name='Größe "1".mp4')
    assert (await asked(sqlite_api, link)).headers["content-disposition"] == (
        "attachment; filename=\"Gr__e _1_.mp4\"; filename*=UTF-8''Gr%C3%B6%C3%9Fe%20%221%22.mp4"
    )


async def test_head_tells_of_the_whole_file_and_sends_nothing_of_it(sqlite_api: Api) -> None:
    _, link = await link_of(sqlite_api)
    same_id = {"x-request-id": "one"}
    whole = await asked(sqlite_api, link, **same_id)
    head = await asked(sqlite_api, link, "HEAD", range="bytes=0-9", **same_id)
    assert (head.status_code, head.content) == (200, b"")
    assert dict(head.headers) == dict(whole.headers)


async def test_an_empty_file_is_a_file(sqlite_api: Api) -> None:
    _, link = await link_of(sqlite_api, b"")
    answer = await asked(sqlite_api, link)
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["content-length"] == "0"


async def test_a_part_is_given_with_its_place(sqlite_api: Api) -> None:
    _, link = await link_of(sqlite_api)
    for wanted, first, last in (("100-199", 100, 199), ("1000-", 1000, 1023), ("-1", 1023, 1023)):
        answer = await asked(sqlite_api, link, range=f"bytes={wanted}")
        assert (answer.status_code, answer.content) == (206, CONTENT[first : last + 1])
        assert answer.headers["content-range"] == f"bytes {first}-{last}/1024"
        assert answer.headers["content-length"] == str(last - first + 1)


async def test_the_whole_file_as_a_part_is_a_part(sqlite_api: Api) -> None:
    _, link = await link_of(sqlite_api)
    answer = await asked(sqlite_api, link, range="bytes=0-")
    assert (answer.status_code, answer.content) == (206, CONTENT)
    assert answer.headers["content-range"] == "bytes 0-1023/1024"


async def test_several_parts_at_once_are_answered_with_the_whole(sqlite_api: Api) -> None:
    _, link = await link_of(sqlite_api)
    answer = await asked(sqlite_api, link, range="bytes=0-1,5-6")
    assert (answer.status_code, answer.content) == (200, CONTENT)
    assert "content-range" not in answer.headers


async def test_a_part_that_is_not_there_is_refused_with_the_size(sqlite_api: Api) -> None:
    _, link = await link_of(sqlite_api)
    answer = await asked(sqlite_api, link, range="bytes=1024-")
    assert problem(answer) == (416, "range_not_satisfiable")
    assert answer.headers["content-range"] == "bytes */1024"


async def test_a_download_that_broke_off_goes_on_with_the_same_file_alone(sqlite_api: Api) -> None:
    _, link = await link_of(sqlite_api)
    tag = (await asked(sqlite_api, link)).headers["etag"]
    rest = await asked(sqlite_api, link, range="bytes=600-", if_range=tag)
    assert (rest.status_code, rest.content) == (206, CONTENT[600:])
    again = await asked(sqlite_api, link, range="bytes=600-", if_range='"other"')
    assert (again.status_code, again.content) == (200, CONTENT)


async def test_what_a_client_has_already_is_not_sent_again(sqlite_api: Api) -> None:
    _, link = await link_of(sqlite_api)
    first = await asked(sqlite_api, link)
    for condition in (
        {"if_none_match": first.headers["etag"]},
        {"if_modified_since": first.headers["last-modified"]},
    ):
        again = await asked(sqlite_api, link, **condition)
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["etag"] == first.headers["etag"]
        assert "content-length" not in again.headers
    assert problem(await asked(sqlite_api, link, if_match='"other"')) == (
        412,
        "precondition_failed",
    )


async def test_what_is_refused_says_why_where_that_is_safe(api: Api) -> None:
    project_id, link = await link_of(api)
    forged = link[:-1] + ("A" if link[-1] != "A" else "B")
    assert problem(await asked(api, forged)) == (404, "link_not_valid")
    await api.call("DELETE", f"/v1/projects/{project_id}")
    gone = await asked(api, link)
    assert problem(gone) == (410, "project_deleted")
    assert shown(gone, "cache-control", *INERT) == INERT | {"cache-control": "no-store"}
    assert problem(await asked(api, forged)) == (404, "link_not_valid")
    api.harness.clock.advance(900)
    assert problem(await asked(api, link)) == (410, "link_expired")


async def test_at_the_end_of_the_access_window_both_addresses_are_gone(api: Api) -> None:
    project_id, link = await link_of(api)
    window = {"accessExpiresAt": "2026-01-02T03:04:05.678Z"}
    await api.done("PATCH", f"/v1/projects/{project_id}", window)
    assert problem(await asked(api, link)) == (410, "project_access_expired")
    result = await api.call("GET", f"/v1/projects/{project_id}/result")
    assert problem(result) == (410, "project_access_expired")


async def test_every_character_of_a_link_counts(sqlite_api: Api) -> None:
    _, link = await link_of(sqlite_api)
    start = len(f"{BASE_URL}/media/")
    for place in range(start, len(link)):
        other = "A" if link[place] != "A" else "B"
        answer = await asked(sqlite_api, link[:place] + other + link[place + 1 :])
        assert problem(answer) == (404, "link_not_valid")


@pytest.mark.parametrize(
    "token", ["x", "..", "%2e%2e%2fetc%2fpasswd", "A" * 116, "A" * 9_000, "%00", "%ff", "é"]
)
async def test_what_is_no_token_is_not_valid(sqlite_api: Api, token: str) -> None:
    status, code = problem(await asked(sqlite_api, f"/media/{token}"))
    assert (status, code) in {(404, "link_not_valid"), (404, "not_found")}


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
async def test_a_link_is_for_reading_alone(sqlite_api: Api, method: str) -> None:
    _, link = await link_of(sqlite_api)
    answer = await asked(sqlite_api, link, method)
    assert problem(answer) == (405, "method_not_allowed")
    assert answer.headers["allow"] == "GET, HEAD"


async def test_a_link_is_in_no_log_line_and_in_no_metric(
    sqlite_api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "cuepost")
    _, link = await link_of(sqlite_api)
    await asked(sqlite_api, link)
    token = link.rpartition("/")[2]
    metrics = (await sqlite_api.call("GET", "/metrics")).text
    await anyio.lowlevel.checkpoint()
    assert token[:20] not in caplog.text + metrics
    assert "event=request operation=downloadMedia method=GET status=200" in caplog.text
    assert 'operation="downloadMedia"' in metrics


async def test_a_fault_of_the_service_is_told_without_its_details(
    sqlite_api: Api, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    _, link = await link_of(sqlite_api)

    def broken(*_: object) -> None:
        raise RuntimeError("/srv/media is on fire")

    monkeypatch.setattr("cuepost.adapters.media.local.LocalFile.__init__", broken)
    answer = await asked(sqlite_api, link)
    assert problem(answer) == (500, "internal_error")
    assert "fire" not in answer.text
    assert "event=internal_error operation=downloadMedia" in caplog.text
