from dataclasses import replace

import httpx2

from tests.application.harness import Harness
from tests.interfaces.rest.client import RULES, Api, opened, problem
from tests.support.coming_back import says_when_to_come_back


def allowance(answer: httpx2.Response) -> tuple[str, str, str]:
    names = ("ratelimit-limit", "ratelimit-remaining", "ratelimit-reset")
    limit, remaining, reset = (answer.headers[name] for name in names)
    return limit, remaining, reset


async def limited(harness: Harness) -> Api:
    return await opened(
        harness, replace(RULES, requests_per_minute=3, service_requests_per_minute=60)
    )


async def test_every_answer_to_a_key_tells_what_is_left(sqlite_harness: Harness) -> None:
    api = await limited(sqlite_harness)
    assert allowance(await api.call("GET", "/v1/projects")) == ("3", "2", "20")
    assert allowance(await api.call("GET", "/v1/projects/x")) == ("3", "1", "40")
    assert allowance(await api.call("POST", "/v1/projects", {})) == ("3", "0", "60")
    refused = await api.call("GET", "/v1/projects")
    assert problem(refused) == (429, "rate_limited")
    assert says_when_to_come_back(refused.headers, 20)
    assert allowance(refused) == ("3", "0", "20")


async def test_a_refused_scope_counts_as_well(sqlite_harness: Harness) -> None:
    api = await limited(sqlite_harness)
    answer = await api.call("POST", "/v1/milestones", {})
    assert problem(answer) == (403, "missing_scope")
    assert allowance(answer) == ("3", "2", "20")


async def test_after_a_while_requests_are_answered_again(sqlite_harness: Harness) -> None:
    api = await limited(sqlite_harness)
    for _ in range(4):
        answer = await api.call("GET", "/v1/projects")
    assert answer.status_code == 429
    api.harness.clock.advance(int(answer.headers["retry-after"]))
    assert (await api.call("GET", "/v1/projects")).status_code == 200


async def test_keys_have_allowances_of_their_own(sqlite_harness: Harness) -> None:
    api = await limited(sqlite_harness)
    for _ in range(4):
        await api.call("GET", "/v1/projects")
    stranger = await api.stranger()
    assert allowance(await api.call("GET", "/v1/projects", key=stranger)) == ("3", "2", "20")
    answer = await api.call("POST", "/v1/milestones", {}, key=api.pipeline)
    assert allowance(answer) == ("60", "59", "1")


async def test_a_limited_key_is_told_before_its_body_is_read(sqlite_harness: Harness) -> None:
    api = await limited(sqlite_harness)
    for _ in range(3):
        await api.call("GET", "/v1/projects")
    answer = await api.call("POST", "/v1/projects", content=b"x" * 10**6)
    assert problem(answer) == (429, "rate_limited")
