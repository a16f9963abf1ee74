"""Who gets to the protocol at all: host, origin, key, rate, method, size."""

from typing import Any

import httpx2
import pytest

from cuepost.application.service import Rules
from cuepost.domain.access import AccountState
from cuepost.domain.egress_policy import EgressPolicy
from cuepost.interfaces.mcp.authentication import own_hosts
from tests.application.harness import BASE_URL, OPERATOR, Harness
from tests.interfaces.mcp.agent import ERAS, McpService, opened
from tests.support.coming_back import says_when_to_come_back

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
BOTH_FORMS = {"Accept": "application/json, text/event-stream"}


async def posted(
    mcp_service: McpService, key: str | None = None, body: Any = INITIALIZE, **headers: str
) -> httpx2.Response:
    async with mcp_service.http(key) as http:
        return await http.post("/mcp", json=body, headers=BOTH_FORMS | headers)


def problem(answer: httpx2.Response) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == answer.status_code
    return answer.status_code, answer.json()["code"]


@pytest.mark.parametrize("key", ["", "cpk_wrong", f"cpk_{'0' * 32}{'A' * 43}"])
async def test_without_a_known_key_nothing_is_answered(
    sqlite_mcp_service: McpService, key: str
) -> None:
    answer = await posted(sqlite_mcp_service, key)
    assert problem(answer) == (401, "unauthenticated")
    assert answer.headers["www-authenticate"] == "Bearer"
    assert "cpk_" not in answer.text.replace("<API_KEY>", "")


async def test_a_revoked_key_is_not_known_any_more(sqlite_mcp_service: McpService) -> None:
    harness = sqlite_mcp_service.harness
    assert (await posted(sqlite_mcp_service)).status_code == 200
    [key] = [
        each
        for each in await harness.see(lambda t: t.keys.all(harness.account.id))
        if each.id.hex in sqlite_mcp_service.owner
    ]
    await harness.do(harness.service.access.revoke_key, OPERATOR, key.id)
    harness.clock.advance(1)
    assert problem(await posted(sqlite_mcp_service)) == (401, "unauthenticated")


async def test_a_service_key_is_refused_because_no_tool_is_for_it(
    sqlite_mcp_service: McpService,
) -> None:
    answer = await posted(sqlite_mcp_service, sqlite_mcp_service.pipeline)
    assert problem(answer) == (403, "missing_scope")


@pytest.mark.parametrize("host", ["evil.example", "cuepost.example.com.evil.example", "127.0.0.1"])
async def test_a_request_for_another_host_is_misdirected(
    sqlite_mcp_service: McpService, host: str
) -> None:
    answer = await posted(sqlite_mcp_service, host=host)
    assert problem(answer) == (421, "misdirected_request")
    assert BASE_URL in answer.json()["detail"]


@pytest.mark.parametrize("host", ["CUEPOST.example.com:443", "127.0.0.1:8000", "localhost:8000"])
async def test_a_request_for_an_own_address_is_answered(
    sqlite_mcp_service: McpService, host: str
) -> None:
    assert (await posted(sqlite_mcp_service, host=host)).status_code == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "file://cuepost.example.com"])
async def test_a_page_of_another_site_is_refused(
    sqlite_mcp_service: McpService, origin: str
) -> None:
    assert problem(await posted(sqlite_mcp_service, origin=origin)) == (403, "origin_not_allowed")


async def test_a_page_of_the_service_itself_is_answered(sqlite_mcp_service: McpService) -> None:
    assert (await posted(sqlite_mcp_service, origin=BASE_URL)).status_code == 200


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "OPTIONS"])
async def test_there_is_nothing_but_post(sqlite_mcp_service: McpService, method: str) -> None:
    async with sqlite_mcp_service.http() as http:
        answer = await http.request(method, "/mcp")
    assert problem(answer) == (405, "method_not_allowed")
    assert answer.headers["allow"] == "POST"


async def test_a_request_that_is_too_large_is_not_read(sqlite_mcp_service: McpService) -> None:
    answer = await posted(sqlite_mcp_service, body={"x": "y" * 300_000})
    assert answer.status_code == 413


@pytest.mark.parametrize("body", [[], {}, {"jsonrpc": "2.0"}, "text", {"id": None, "method": 7}])
@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28", "1999-01-01"])
async def test_what_is_no_request_of_the_protocol_gets_an_answer_of_4xx(
    sqlite_mcp_service: McpService, body: Any, version: str
) -> None:
    answer = await posted(sqlite_mcp_service, body=body, **{"mcp-protocol-version": version})
    assert 400 <= answer.status_code < 500


HOSTILE = {
    "not JSON": b"{",
    "nothing": b"",
    "not UTF-8": b'{"jsonrpc":"2.0","id":1,"method":"\xff"}',
    "deep lists": b"[" * 100_000,
    "deep objects": b'{"a":' * 40_000 + b"1" + b"}" * 40_000,
    "deep arguments": b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":'
    b'{"name":"projects_create","arguments":' + b'{"a":' * 20_000 + b"1" + b"}" * 20_002,
    "huge number": b'{"jsonrpc":"2.0","id":' + b"9" * 5_000 + b',"method":"ping"}',
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_hostile_bytes_are_answered_with_4xx(
    sqlite_mcp_service: McpService, name: str, version: str
) -> None:
    headers = {"content-type": "application/json", "mcp-protocol-version": version}
    async with sqlite_mcp_service.http() as http:
        answer = await http.post("/mcp", content=HOSTILE[name], headers=BOTH_FORMS | headers)
    assert 400 <= answer.status_code < 500
    assert "Traceback" not in answer.text


async def test_a_key_that_asks_too_often_waits(sqlite_harness: Harness) -> None:
    rules = Rules(BASE_URL, EgressPolicy(), requests_per_minute=3)
    async with opened(sqlite_harness, rules) as mcp_service:
        answers = [await posted(mcp_service) for _ in range(4)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
        assert says_when_to_come_back(answers[3].headers, 20)
        mcp_service.harness.clock.advance(20)
        assert (await posted(mcp_service)).status_code == 200


@pytest.mark.parametrize("era", ERAS)
async def test_another_account_finds_nothing(mcp_service: McpService, era: str) -> None:
    mine = str((await mcp_service.harness.endpoint()).view.endpoint.id)
    stranger = await mcp_service.harness.new_owner()
    key = await mcp_service.new_key(stranger.scopes, stranger.account_id)
    async with mcp_service.agent(key=key, era=era) as agent:
        seen = await agent.call_tool("webhooks_get", {"webhook_id": mine})
        explained = await agent.call_tool("webhooks_explain", {"webhook_id": mine})
        listed = await agent.call_tool("webhooks_list", {})
    for refused in (seen, explained):
        assert refused.structured_content["error"]["code"] == "not_found"
    assert listed.structured_content == {"data": [], "nextCursor": None}


@pytest.mark.parametrize(
    ("base_url", "host", "port", "hosts"),
    [
        (
            "https://cue.example",
            "10.0.0.1",
            80,
            {"cue.example", "cue.example:443", "10.0.0.1:80"},
        ),
        ("https://cue.example:8443", "2001:db8::1", 80, {"cue.example:8443", "[2001:db8::1]:80"}),
        (
            "http://127.0.0.1:8000",
            "127.0.0.1",
            8000,
            {"127.0.0.1:8000", "localhost:8000", "[::1]:8000"},
        ),
        (
            "http://cue.example",
            "0.0.0.0",
            8000,
            {"cue.example", "cue.example:80", "127.0.0.1:8000", "localhost:8000", "[::1]:8000"},
        ),
        (
            "https://[2001:db8::2]/",
            "localhost",
            1,
            {"[2001:db8::2]", "[2001:db8::2]:443", "127.0.0.1:1", "localhost:1", "[::1]:1"},
        ),
        ("http://cue.example:8000", "cue.internal", 9, {"cue.example:8000", "cue.internal:9"}),
    ],
)
def test_own_hosts_are_the_base_address_and_where_the_process_listens(
    base_url: str, host: str, port: int, hosts: set[str]
) -> None:
    assert own_hosts(base_url, host, port) == hosts


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (AccountState.ARRIVING, (503, "account_moving")),
        (AccountState.MOVED, (410, "account_moved")),
    ],
)
async def test_the_key_of_an_account_that_is_not_here_is_told_so(
    sqlite_mcp_service: McpService, state: AccountState, expected: tuple[int, str]
) -> None:
    harness = sqlite_mcp_service.harness
    await harness.do(lambda t: t.moves.set_state(harness.account.id, state))
    answer = await posted(sqlite_mcp_service)
    assert problem(answer) == expected
    assert ("retry-after" in answer.headers) == (state is AccountState.ARRIVING)
