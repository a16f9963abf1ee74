"""What an agent with an operator key sees of accounts."""

import json

import jsonschema_rs
import pytest

from cuepost.domain.access import OPERATOR_SCOPES, Role, Scope
from cuepost.interfaces.mcp.resources import RESULTS
from cuepost.interfaces.mcp.server import listed
from cuepost.interfaces.mcp.table import TOOLS
from tests.application.harness import OPERATOR
from tests.interfaces.mcp.agent import (
    ERAS,
    OPERATOR_TOOLS,
    McpService,
    arguments_of_everything,
    text_in,
)

each_era = pytest.mark.parametrize("era", ERAS)


@each_era
async def test_an_operator_key_sees_the_tools_for_accounts_alone(
    sqlite_mcp_service: McpService, era: str
) -> None:
    for scopes in (OPERATOR_SCOPES, [Scope.ACCOUNTS_READ], [Scope.ACCOUNTS_MANAGE]):
        key = await sqlite_mcp_service.new_key(scopes)
        async with sqlite_mcp_service.agent(key=key, era=era) as agent:
            seen = (await agent.list_tools()).tools
        assert [tool.name for tool in seen] == [tool.name for tool in OPERATOR_TOOLS]
        assert [tool.name for tool in seen] == [
            "accounts_list",
            "accounts_get",
            "accounts_members_list",
        ]


@each_era
async def test_every_result_fits_the_schema_that_can_be_read(
    sqlite_mcp_service: McpService, era: str
) -> None:
    arguments = await arguments_of_everything(sqlite_mcp_service)
    key = sqlite_mcp_service.operator
    async with sqlite_mcp_service.agent(era=era, key=key) as agent:
        read = await agent.read_resource(RESULTS)
        schemas = json.loads(text_in(read.contents[0]))
        for tool in OPERATOR_TOOLS:
            jsonschema_rs.validate(listed(tool).input_schema, arguments[tool.name])
            answer = await agent.call_tool(tool.name, arguments[tool.name])
            assert not answer.is_error, (tool.name, answer.content)
            one = schemas["properties"][tool.name] | {"$defs": schemas["$defs"]}
            jsonschema_rs.validate(one, answer.structured_content)


async def test_an_operator_key_can_call_no_tool_of_an_account(
    sqlite_mcp_service: McpService,
) -> None:
    arguments = await arguments_of_everything(sqlite_mcp_service)
    before = await sqlite_mcp_service.stored()
    async with sqlite_mcp_service.agent(key=sqlite_mcp_service.operator) as agent:
        for tool in TOOLS:
            if tool in OPERATOR_TOOLS:
                continue
            answer = await agent.call_tool(tool.name, arguments.get(tool.name, {}))
            assert answer.is_error
            assert answer.structured_content["error"]["code"] == "wrong_kind_of_key"
    assert await sqlite_mcp_service.stored() == before


async def test_a_key_with_the_scopes_of_a_viewer_changes_nothing(
    sqlite_mcp_service: McpService,
) -> None:
    """Every tool of the table that does more than read."""
    arguments = await arguments_of_everything(sqlite_mcp_service)
    key = await sqlite_mcp_service.new_key(Role.VIEWER.scopes)
    before = await sqlite_mcp_service.stored()
    tried = 0
    async with sqlite_mcp_service.agent(key=key) as agent:
        for tool in TOOLS:
            if not tool.reads:
                answer = await agent.call_tool(tool.name, arguments[tool.name])
                assert answer.is_error
                assert answer.structured_content["error"]["code"] == "missing_scope"
                tried += 1
    assert tried > 10
    assert await sqlite_mcp_service.stored() == before


async def test_members_of_an_account_are_listed_for_the_operator_alone(
    mcp_service: McpService,
) -> None:
    harness = mcp_service.harness
    for number in range(3):
        await harness.do(
            harness.service.account_members.add,
            OPERATOR,
            harness.account.id,
            role=Role.VIEWER,
            external_id=f"user_{number}",
        )
    account = str(harness.account.id)
    page = await mcp_service.done("accounts_members_list", account=account, limit=2)
    rest = await mcp_service.done(
        "accounts_members_list", account=account, cursor=page["nextCursor"]
    )
    found = [each["externalId"] for each in page["data"] + rest["data"]]
    assert found == ["user_2", "user_1", "user_0"]
    missing = await mcp_service.result("accounts_members_list", account="external:missing")
    assert missing.data["error"]["code"] == "not_found"


def test_no_tool_changes_an_account() -> None:
    assert all(tool.reads for tool in OPERATOR_TOOLS)


async def test_a_key_that_may_only_make_portal_links_has_no_tool(
    sqlite_mcp_service: McpService,
) -> None:
    key = await sqlite_mcp_service.new_key([Scope.PORTAL_CREATE])
    async with sqlite_mcp_service.http(key) as http:
        answer = await http.post("/mcp", json={})
    assert (answer.status_code, answer.json()["code"]) == (403, "missing_scope")


async def test_accounts_are_listed_searched_and_got(mcp_service: McpService) -> None:
    create = mcp_service.harness.service.accounts.create
    for number in range(3):
        await mcp_service.harness.do(
            create, OPERATOR, name=f"Studio {number}", external_id=f"cust_{number}"
        )
    page = await mcp_service.done("accounts_list", limit=2)
    assert [each["name"] for each in page["data"]] == ["Studio 2", "Studio 1"]
    rest = await mcp_service.done("accounts_list", limit=2, cursor=page["nextCursor"])
    assert [each["name"] for each in rest["data"]] == ["Studio 0", "Test account"]
    for search in ({"name_prefix": "STUDIO"}, {"external_id_prefix": "cust_"}):
        page = await mcp_service.done("accounts_list", limit=2, **search)
        rest = await mcp_service.done("accounts_list", cursor=page["nextCursor"], **search)
        names = [each["name"] for each in page["data"] + rest["data"]]
        assert names == ["Studio 0", "Studio 1", "Studio 2"]
    found = await mcp_service.done("accounts_get", account="external:cust_1")
    assert found == await mcp_service.done("accounts_get", account=found["id"])
    assert (found["name"], found["externalId"]) == ("Studio 1", "cust_1")


@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("accounts_get", {"account": "external:missing"}, "not_found"),
        ("accounts_get", {"account": "nobody"}, "not_found"),
        ("accounts_list", {"name_prefix": "a", "external_id_prefix": "b"}, "two_searches"),
        ("accounts_list", {"cursor": "nonsense"}, "invalid_cursor"),
        ("accounts_list", {"external_id_prefix": "a/b"}, "invalid_external_id"),
    ],
)
async def test_what_cannot_be_found_is_refused(
    mcp_service: McpService, tool: str, arguments: dict[str, str], code: str
) -> None:
    result = await mcp_service.result(tool, **arguments)
    assert result.data["error"]["code"] == code
