import asyncio
from typing import Any

import httpx2
import pytest

from cuepost.domain.access import ACCOUNT_SCOPES
from cuepost.interfaces.rest.openapi.examples import example_of
from cuepost.interfaces.rest.table import OPERATIONS
from tests.application.harness import BASE_URL
from tests.interfaces.rest.client import URL, Api, faults, problem

KEY = {"Idempotency-Key": "first-try"}
POSTS = [operation for operation in OPERATIONS if operation.method == "POST"]


def kept(answer: httpx2.Response) -> tuple[int, bytes, str | None, str]:
    location = answer.headers.get("location")
    return answer.status_code, answer.content, location, answer.headers["content-type"]


def same(first: httpx2.Response, second: httpx2.Response) -> bool:
    return kept(first) == kept(second)


async def test_a_repetition_gets_the_first_answer_secret_and_address_included(api: Api) -> None:
    first = await api.call("POST", "/v1/webhooks", {"url": URL}, headers=KEY)
    assert first.status_code == 201
    assert "idempotency-replayed" not in first.headers
    before = await api.stored()
    api.harness.clock.advance(hours=23, minutes=59)
    again = await api.call("POST", "/v1/webhooks", {"url": URL}, headers=KEY)
    assert same(first, again)
    assert again.headers["idempotency-replayed"] == "true"
    assert again.headers["location"].startswith(f"{BASE_URL}/v1/webhooks/")
    assert await api.stored() == before


async def test_another_way_of_writing_the_body_is_the_same_request(api: Api) -> None:
    first = await api.call("POST", "/v1/webhooks", {"url": URL, "description": "ü"}, headers=KEY)
    kind = {"Content-Type": "application/json; charset=utf-8"}
    body = rb' { "description" : "\u00fc",' + f'\n"url":"{URL}"}}'.encode()
    again = await api.call("POST", "/v1/webhooks", content=body, headers=KEY | kind)
    assert same(first, again)


async def test_another_body_or_address_under_the_same_key_is_refused(api: Api) -> None:
    await api.done("POST", "/v1/webhooks", {"url": URL}, headers=KEY)
    before = await api.stored()
    other = await api.call("POST", "/v1/webhooks", {"url": URL + "/2"}, headers=KEY)
    assert problem(other) == (422, "idempotency_key_reused")
    elsewhere = await api.call("POST", "/v1/projects", {"name": "a"}, headers=KEY)
    assert problem(elsewhere) == (422, "idempotency_key_reused")
    assert await api.stored() == before


async def test_after_a_day_a_key_is_new_again(api: Api) -> None:
    first = await api.call("POST", "/v1/projects", {"name": "a"}, headers=KEY)
    api.harness.clock.advance(hours=24)
    second = await api.call("POST", "/v1/projects", {"name": "b"}, headers=KEY)
    assert second.status_code == 201
    assert first.json()["id"] != second.json()["id"]


async def test_a_refusal_is_given_again_even_when_it_would_not_be_made_again(api: Api) -> None:
    project = await api.harness.project()
    path = f"/v1/projects/{project.id}/export"
    repeated = KEY | {"X-Request-Id": "repeated"}
    first = await api.call("POST", path, headers=repeated)
    assert problem(first) == (409, "illegal_transition")
    await api.done("POST", f"/v1/projects/{project.id}/cancel")
    again = await api.call("POST", path, headers=repeated)
    assert same(first, again)
    assert again.headers["idempotency-replayed"] == "true"


async def test_a_request_that_was_not_valid_does_not_use_its_key_up(api: Api) -> None:
    refused = await api.call("POST", "/v1/projects", {"name": ""}, headers=KEY)
    assert faults(refused) == [("name", "too_short")]
    await api.done("POST", "/v1/projects", {"name": "a"}, headers=KEY)


async def test_keys_of_different_accounts_never_meet(api: Api) -> None:
    stranger = await api.stranger()
    mine = await api.done("POST", "/v1/projects", {"name": "a"}, headers=KEY)
    theirs = await api.done("POST", "/v1/projects", {"name": "b"}, headers=KEY, key=stranger)
    assert mine["id"] != theirs["id"]


async def test_another_key_of_the_account_is_never_shown_the_secret_again(api: Api) -> None:
    colleague = await api.new_key(ACCOUNT_SCOPES)
    mine = await api.done("POST", "/v1/webhooks", {"url": URL}, headers=KEY)
    theirs = await api.call("POST", "/v1/webhooks", {"url": URL}, headers=KEY, key=colleague)
    assert (theirs.status_code, "idempotency-replayed" in theirs.headers) == (201, False)
    assert (theirs.json()["id"], theirs.json()["secret"]) != (mine["id"], mine["secret"])
    other = await api.call("POST", "/v1/projects", {"name": "a"}, headers=KEY, key=colleague)
    assert problem(other) == (422, "idempotency_key_reused")
    rotate, turn = f"/v1/webhooks/{mine['id']}/rotate-secret", {"Idempotency-Key": "turn"}
    rotated = await api.done("POST", rotate, headers=turn)
    refused = await api.call("POST", rotate, headers=turn, key=colleague)
    assert problem(refused) == (409, "rotation_overlap_active")
    assert await api.done("POST", rotate, headers=turn) == rotated


@pytest.mark.parametrize("operation", POSTS, ids=lambda operation: operation.name)
@pytest.mark.parametrize("key", ["", " ", "a b", "x" * 201, "ü", "a\x7f"])
async def test_a_key_that_is_none_is_refused(sqlite_api: Api, operation: Any, key: str) -> None:
    path = operation.path.replace("{", "").replace("}", "")
    for name in ("webhookId", "projectId", "deliveryId", "listenerId", "accountId", "invitationId"):
        path = path.replace(name, "0198c0de-5a3b-7d21-9c4e-3f6a5b7c8d90")
    token = sqlite_api.key_for(operation)
    headers = [
        (b"authorization", f"Bearer {token}".encode()),
        (b"idempotency-key", key.encode()),
        (b"content-type", b"application/json"),
    ]
    answer = await sqlite_api.client.post(path, headers=headers, json=example_of(operation.body))
    assert faults(answer) == [("Idempotency-Key", "invalid_idempotency_key")]


async def test_a_key_of_two_hundred_characters_is_taken(api: Api) -> None:
    headers = {"Idempotency-Key": "~" * 200}
    await api.done("POST", "/v1/projects", {"name": "a"}, headers=headers)


async def test_at_the_same_time_one_request_acts_and_the_others_get_its_answer(api: Api) -> None:
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        asked = [
            group.create_task(api.call("POST", "/v1/webhooks", {"url": URL}, headers=KEY))
            for _ in range(8)
        ]
    answers = [task.result() for task in asked]
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.content for answer in answers}) == 1
    assert sum("idempotency-replayed" in answer.headers for answer in answers) == 7
    assert len((await api.stored())["endpoints"]) == 1


async def test_at_the_same_time_different_bodies_under_one_key_make_one_thing(api: Api) -> None:
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        asked = [
            group.create_task(api.call("POST", "/v1/projects", {"name": str(n)}, headers=KEY))
            for n in range(6)
        ]
    statuses = sorted(task.result().status_code for task in asked)
    assert statuses == [201, 422, 422, 422, 422, 422]
    assert len((await api.stored())["projects"]) == 1


async def report(api: Api, **more: Any) -> httpx2.Response:
    project = more.pop("project")
    body = {"milestones": [{"reportId": "r", "projectId": str(project.id), "status": "completed"}]}
    return await api.call("POST", "/v1/milestones", body | more, key=api.pipeline, headers=KEY)


async def test_reported_milestones_are_answered_again(api: Api) -> None:
    await api.harness.endpoint()
    project = await api.harness.project()
    first = await report(api, project=project)
    before = await api.stored()
    again = await report(api, project=project)
    assert same(first, again)
    assert (first.status_code, again.headers["idempotency-replayed"]) == (200, "true")
    assert await api.stored() == before
    other = await report(api, project=await api.harness.project())
    assert problem(other) == (422, "idempotency_key_reused")


async def test_milestones_reported_at_the_same_time_under_one_key_happen_once(api: Api) -> None:
    await api.harness.endpoint()
    project = await api.harness.project()
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        asked = [group.create_task(report(api, project=project)) for _ in range(6)]
    answers = [task.result() for task in asked]
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1
    assert len((await api.stored())["events"]) == 1


async def test_other_methods_do_not_hear_the_key(api: Api) -> None:
    made = await api.done("POST", "/v1/projects", {"name": "a"})
    path = f"/v1/projects/{made['id']}"
    for name in ("b", "c"):
        changed = await api.done("PATCH", path, {"name": name}, headers=KEY)
        assert changed["name"] == name
