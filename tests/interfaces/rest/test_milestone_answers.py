"""What the hot route answers is what it answered when it was routed like every other call.

The expected answers were recorded then: status, every header and the whole body. The id of the
request, which came later, was added to each by hand.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.application.harness import Harness
from tests.interfaces.rest.client import RULES, Api, opened
from tests.interfaces.rest.milestone_requests import JSON, REPETITIONS, REQUESTS, Asked
from tests.support.coming_back import says_when_to_come_back

RECORDED: dict[str, Any] = json.loads(
    Path(__file__).parents[2].joinpath("fixtures/milestone_answers.json").read_text()
)


async def ask(api: Api, asked: Asked) -> httpx2.Response:
    known = {"pipeline": f"Bearer {api.pipeline}", "owner": f"Bearer {api.owner}"}
    authorization = known.get(asked.key, asked.key)
    headers = {"X-Request-Id": "asked"} | asked.headers
    headers |= {"Authorization": authorization} if authorization else {}
    return await api.client.request(
        asked.method, asked.path, content=asked.content, headers=headers
    )


def reported(answer: httpx2.Response) -> dict[str, Any]:
    return {
        "status": answer.status_code,
        "headers": dict(sorted(answer.headers.items())),
        "body": answer.text,
    }


def test_there_is_a_recorded_answer_to_each_request() -> None:
    assert list(RECORDED) == [*REQUESTS, "rate limit spent"]


@pytest.mark.parametrize("name", [name for name in REQUESTS if name not in REPETITIONS])
async def test_each_request_is_answered_as_before(sqlite_api: Api, name: str) -> None:
    assert reported(await ask(sqlite_api, REQUESTS[name])) == RECORDED[name]


async def test_an_idempotency_key_is_answered_as_before(sqlite_api: Api) -> None:
    for name, asked in REPETITIONS.items():
        assert reported(await ask(sqlite_api, asked)) == RECORDED[name], name


async def test_a_spent_rate_limit_is_answered_as_before(sqlite_harness: Harness) -> None:
    api = await opened(sqlite_harness, replace(RULES, service_requests_per_minute=2))
    for _ in range(3):
        answer = await ask(api, Asked(headers=JSON))
    assert says_when_to_come_back(answer.headers, 30)
    answer.headers["retry-after"] = "30"
    assert reported(answer) == RECORDED["rate limit spent"]


@pytest.mark.parametrize(
    "name",
    ["no key", "another scheme", "unknown key", "no content type", "plain text", "compressed",
     "empty", "cut off", "not utf-8", "deep", "long idempotency key", "query"],
)  # fmt: skip
async def test_what_every_call_refuses_is_refused_alike(sqlite_api: Api, name: str) -> None:
    asked = REQUESTS[name]
    path = asked.path.replace("/v1/milestones", "/v1/webhooks")
    key = "owner" if asked.key == "pipeline" else asked.key
    elsewhere = reported(await ask(sqlite_api, replace(asked, path=path, key=key)))
    here = reported(await ask(sqlite_api, asked))
    for answer in (here, elsewhere):
        for header in [each for each in answer["headers"] if each.startswith("ratelimit-")]:
            del answer["headers"][header]
    assert here == elsewhere
