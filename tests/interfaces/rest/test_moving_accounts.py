"""What callers are told while their account moves to another database, and afterwards."""

from typing import Any

import pytest

from cuepost.domain.access import AccountState
from tests.application.harness import OPERATOR
from tests.interfaces.rest.client import Api, problem

PROJECT = {"name": "Cut"}


async def test_a_change_is_to_be_repeated_and_a_look_is_answered(api: Api) -> None:
    made = await api.done("POST", "/v1/projects", PROJECT)
    moving, account_id = api.harness.service.maintenance.moving, api.harness.account.id
    await moving.start(OPERATOR, account_id)
    once: dict[str, Any] = {"headers": {"Idempotency-Key": "k"}}
    for more in ({}, once):
        answer = await api.call("POST", "/v1/projects", PROJECT, **more)
        assert problem(answer) == (503, "account_moving")
        assert int(answer.headers["retry-after"]) > 0
    assert [each["id"] for each in (await api.done("GET", "/v1/projects"))["data"]] == [made["id"]]
    await moving.abort(OPERATOR, account_id)
    assert (await api.call("POST", "/v1/projects", PROJECT, **once)).status_code == 201


async def test_a_report_is_to_be_repeated(api: Api) -> None:
    await api.harness.endpoint()
    project = await api.harness.project()
    body = {"milestones": [{"reportId": "r", "projectId": str(project.id), "status": "completed"}]}
    moving, account_id = api.harness.service.maintenance.moving, api.harness.account.id
    await moving.start(OPERATOR, account_id)
    once: dict[str, Any] = {"headers": {"Idempotency-Key": "k"}, "key": api.pipeline}
    answer = await api.call("POST", "/v1/milestones", body, **once)
    assert problem(answer) == (503, "account_moving")
    assert "retry-after" in answer.headers
    await moving.abort(OPERATOR, account_id)
    [reported] = (await api.done("POST", "/v1/milestones", body, **once))["results"]
    assert reported["notified"]


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (AccountState.ARRIVING, (503, "account_moving")),
        (AccountState.MOVED, (410, "account_moved")),
    ],
)
async def test_an_account_that_is_not_here_answers_nothing_else(
    api: Api, state: AccountState, expected: tuple[int, str]
) -> None:
    harness = api.harness
    await harness.do(lambda t: t.moves.set_state(harness.account.id, state))
    for method, path in (("GET", "/v1/projects"), ("POST", "/v1/projects"), ("GET", "/v1/events")):
        body = PROJECT if method == "POST" else None
        assert problem(await api.call(method, path, body)) == expected
