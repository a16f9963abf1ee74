"""ETag, If-None-Match and If-Match on webhooks and projects."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import pytest

from cuepost.domain.project import ProjectStatus
from tests.interfaces.rest.client import URL, Api, problem

STALE = '"00000000000000000000000000000000"'
UNKNOWN = "0198c0de-5a3b-7d21-9c4e-3f6a5b7c8d90"
Make = Callable[[Api], Awaitable[str]]


async def webhook(api: Api) -> str:
    return f"/v1/webhooks/{(await api.done('POST', '/v1/webhooks', {'url': URL}))['id']}"


async def project(api: Api) -> str:
    return f"/v1/projects/{(await api.harness.project(ProjectStatus.READY)).id}"


async def tag_of(api: Api, path: str) -> str:
    tag: str = (await api.call("GET", path)).headers["etag"]
    return tag


async def conditional(
    api: Api, method: str, path: str, condition: str, body: Any = None
) -> httpx2.Response:
    return await api.call(method, path, body, headers={"If-Match": condition})


CHANGES: list[tuple[Make, str, str, Any]] = [
    (webhook, "PATCH", "", {"description": "CI"}),
    (webhook, "POST", "/rotate-secret", None),
    (webhook, "POST", "/end-overlap", None),
    (webhook, "DELETE", "", None),
    (project, "PATCH", "", {"name": "Teaser"}),
    (project, "POST", "/export", None),
    (project, "POST", "/cancel", None),
    (project, "DELETE", "", None),
]
each_change = pytest.mark.parametrize(
    ("make", "method", "action", "body"),
    CHANGES,
    ids=[f"{method} {make.__name__}{action}" for make, method, action, _ in CHANGES],
)


@pytest.mark.parametrize(
    ("path", "body"), [("/v1/webhooks", {"url": URL}), ("/v1/projects", {"name": "Trailer"})]
)
async def test_what_is_created_has_the_strong_tag_that_it_is_read_with(
    api: Api, path: str, body: Any
) -> None:
    made = await api.call("POST", path, body)
    assert made.headers["etag"].startswith('"')
    one = f"{path}/{made.json()['id']}"
    assert await tag_of(api, one) == made.headers["etag"]
    assert "etag" not in (await api.call("GET", path)).headers


@each_change
async def test_a_change_of_the_expected_version_is_made_and_tells_the_new_one(
    api: Api, make: Make, method: str, action: str, body: Any
) -> None:
    path = await make(api)
    if action == "/end-overlap":
        await api.done("POST", f"{path}/rotate-secret")
    before = await tag_of(api, path)
    changed = await conditional(api, method, path + action, f'{STALE}, W/"x" , {before}', body)
    assert changed.is_success, changed.text
    if method == "DELETE":
        assert "etag" not in changed.headers
    else:
        assert changed.headers["etag"] == await tag_of(api, path) != before


@each_change
async def test_a_change_of_another_version_is_refused_and_changes_nothing(
    api: Api, make: Make, method: str, action: str, body: Any
) -> None:
    path = await make(api)
    tag = await tag_of(api, path)
    before = await api.stored()
    for condition in (STALE, f"W/{tag}", tag.strip('"'), "", f"{STALE}, {STALE}", '"*"'):
        refused = await conditional(api, method, path + action, condition, body)
        assert problem(refused) == (412, "precondition_failed"), condition
    assert await api.stored() == before


@each_change
async def test_a_star_allows_every_version_of_what_exists(
    api: Api, make: Make, method: str, action: str, body: Any
) -> None:
    path = await make(api)
    assert (await conditional(api, method, path + action, " * ", body)).is_success
    kind = path.rpartition("/")[0]
    missing = await conditional(api, method, f"{kind}/{UNKNOWN}{action}", "*", body)
    assert problem(missing) == (404, "not_found")


async def test_a_condition_may_come_in_several_lines(api: Api) -> None:
    path = await webhook(api)
    lines = [("If-Match", await tag_of(api, path)), ("If-Match", STALE)]
    headers = [("Authorization", f"Bearer {api.owner}"), *lines]
    answer = await api.client.patch(path, headers=headers, json={"description": "CI"})
    assert answer.status_code == 200


@pytest.mark.parametrize("make", [webhook, project])
async def test_a_known_version_is_not_sent_again(api: Api, make: Make) -> None:
    path = await make(api)
    tag = await tag_of(api, path)
    for method in ("GET", "HEAD"):
        for condition in (tag, f"W/{tag}", f"{STALE},{tag}", "*"):
            known = await api.call(method, path, headers={"If-None-Match": condition})
            assert (known.status_code, known.content) == (304, b"")
            assert known.headers["etag"] == tag
            assert "content-type" not in known.headers
    for condition in (STALE, tag.strip('"')):
        new = await api.call("GET", path, headers={"If-None-Match": condition})
        assert (new.status_code, new.headers["etag"]) == (200, tag)
    await api.done("DELETE", path)
    gone = await api.call("GET", path, headers={"If-None-Match": tag})
    assert gone.status_code in (404, 410)


async def test_a_delivery_leaves_the_version_of_its_endpoint_as_it_is(api: Api) -> None:
    path = await webhook(api)
    before = await tag_of(api, path)
    await api.done("POST", f"{path}/test")
    assert await tag_of(api, path) == before


async def test_the_end_of_an_overlap_makes_another_version(api: Api) -> None:
    path = await webhook(api)
    rotated = await api.call("POST", f"{path}/rotate-secret")
    api.harness.clock.advance(hours=24)
    refused = await conditional(api, "PATCH", path, rotated.headers["etag"], {"description": "CI"})
    assert problem(refused) == (412, "precondition_failed")
    assert await tag_of(api, path) != rotated.headers["etag"]


async def test_a_milestone_makes_another_version_of_its_project(api: Api) -> None:
    found = await api.harness.project(ProjectStatus.EXPORTING)
    path = f"/v1/projects/{found.id}"
    before = await tag_of(api, path)
    await api.report({"reportId": "r", "projectId": str(found.id), "status": "failed"})
    refused = await conditional(api, "POST", f"{path}/export", before)
    assert problem(refused) == (412, "precondition_failed")


@pytest.mark.parametrize(
    ("make", "field"), [(webhook, "description"), (project, "name")], ids=["webhook", "project"]
)
async def test_of_changes_at_the_same_time_with_one_tag_a_single_one_is_made(
    api: Api, make: Make, field: str
) -> None:
    path = await make(api)
    tag = await tag_of(api, path)
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        asked = [
            group.create_task(conditional(api, "PATCH", path, tag, {field: f"change {number}"}))
            for number in range(8)
        ]
    answers = [task.result() for task in asked]
    assert sorted(answer.status_code for answer in answers) == [200] + [412] * 7
    [made] = [answer for answer in answers if answer.is_success]
    assert (await api.done("GET", path))[field] == made.json()[field]


async def test_a_replay_has_the_tag_of_the_first_answer_whatever_the_condition(api: Api) -> None:
    path = await webhook(api)
    headers = {"Idempotency-Key": "turn", "If-Match": await tag_of(api, path)}
    first = await api.call("POST", f"{path}/rotate-secret", headers=headers)
    again = await api.call("POST", f"{path}/rotate-secret", headers=headers)
    assert again.headers["idempotency-replayed"] == "true"
    assert (again.json(), again.headers["etag"]) == (first.json(), first.headers["etag"])


async def test_a_failed_condition_does_not_use_an_idempotency_key_up(api: Api) -> None:
    path, key = await webhook(api), {"Idempotency-Key": "turn"}
    refused = await api.call("POST", f"{path}/rotate-secret", headers=key | {"If-Match": STALE})
    assert problem(refused) == (412, "precondition_failed")
    fresh = key | {"If-Match": await tag_of(api, path)}
    assert (await api.call("POST", f"{path}/rotate-secret", headers=fresh)).status_code == 200


async def test_calls_about_many_or_other_things_have_no_tag_and_hear_no_condition(api: Api) -> None:
    path = await webhook(api)
    tested = await api.call("POST", f"{path}/test", headers={"If-Match": STALE})
    assert (tested.status_code, "etag" in tested.headers) == (202, False)
    listed = await api.call("GET", "/v1/projects", headers={"If-None-Match": "*"})
    assert listed.status_code == 200
