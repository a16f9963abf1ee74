"""The real client: both ways, in both eras of the protocol."""

from typing import Any

import jsonschema_rs
import pytest
from mcp.shared.exceptions import MCPError

from cuepost.domain.access import USUAL_SCOPES, Scope
from cuepost.domain.attempt import Outcome
from cuepost.domain.event_catalog import CATALOG
from cuepost.interfaces.mcp.resources import RESOURCES
from cuepost.interfaces.mcp.schemas import schema_of
from cuepost.interfaces.mcp.table import TOOLS
from cuepost.interfaces.mcp.tool import Tool
from tests.interfaces.mcp.agent import (
    ACCOUNT_TOOLS,
    ERAS,
    OPERATOR_TOOLS,
    WAYS,
    McpService,
    arguments_of_everything,
    text_in,
)

VERSIONS = {"auto": "2026-07-28", "legacy": "2025-11-25"}
AS_BRIEFED = {
    *("projects_create", "projects_list", "projects_get", "projects_export", "projects_cancel"),
    *("projects_delete", "projects_get_result"),
    *("webhooks_list", "webhooks_get", "webhooks_create", "webhooks_update", "webhooks_delete"),
    *("webhooks_rotate_secret", "webhooks_send_test"),
    *("deliveries_list", "deliveries_get", "deliveries_retry", "events_get"),
    *("webhooks_explain", "signature_diagnose"),
}

each_tool = pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
each_era = pytest.mark.parametrize("era", ERAS)
each_way = pytest.mark.parametrize("way", WAYS)


@each_way
@each_era
async def test_an_agent_lists_calls_reads_and_is_prompted(
    sqlite_mcp_service: McpService, era: str, way: str
) -> None:
    async with sqlite_mcp_service.agent(era=era, way=way) as agent:
        assert agent.protocol_version == VERSIONS[era]
        assert agent.instructions is not None
        tools = (await agent.list_tools()).tools
        assert [tool.name for tool in tools] == [tool.name for tool in ACCOUNT_TOOLS]
        made = await agent.call_tool("projects_create", {"name": "Trailer"})
        assert made.structured_content["origin"] == "mcp"
        refused = await agent.call_tool("projects_create", {"title": "Trailer"})
        assert (refused.is_error, refused.structured_content["error"]["code"]) == (
            True,
            "unknown_field",
        )
        resources = (await agent.list_resources()).resources
        assert [str(each.uri) for each in resources] == [each.uri for each in RESOURCES]
        read = await agent.read_resource("cuepost://outcomes")
        assert all(outcome in text_in(read.contents[0]) for outcome in Outcome)
        [prompt] = (await agent.list_prompts()).prompts
        result = await agent.get_prompt(prompt.name, {"webhook_id": "0198c0de"})
        assert "webhooks_explain with webhook_id '0198c0de'" in text_in(result.messages[0].content)


@each_way
@each_era
async def test_what_does_not_exist_is_refused_by_the_protocol(
    sqlite_mcp_service: McpService, era: str, way: str
) -> None:
    async with sqlite_mcp_service.agent(era=era, way=way) as agent:
        for attempt in (
            agent.call_tool("projects_burn", {}),
            agent.read_resource("cuepost://secrets"),
            agent.get_prompt("be_evil"),
        ):
            with pytest.raises(MCPError, match=r"There is no (tool|resource|prompt)"):
                await attempt


def test_every_tool_of_the_brief_is_there() -> None:
    assert {tool.name for tool in TOOLS} >= AS_BRIEFED


@each_tool
def test_schemas_are_whole_strict_and_portable(tool: Tool) -> None:
    for model in (tool.arguments, tool.answer):
        schema = schema_of(model)
        jsonschema_rs.meta.validate(schema)
        assert schema["type"] == "object"
        assert r"\Z" not in str(schema)
    arguments = schema_of(tool.arguments)
    assert arguments["additionalProperties"] is False
    assert all(name == name.lower() for name in arguments["properties"])


@each_tool
def test_annotations_say_what_a_tool_does(tool: Tool) -> None:
    assert not (tool.reads and (tool.destructive or tool.reaches_out))
    assert ("confirm_host" in schema_of(tool.arguments)["properties"]) == tool.destructive
    reading = ("list", "get", "explain", "diagnose", "result", "retry")
    assert not tool.reads or tool.name.endswith(reading)


async def test_annotations_reach_the_agent(sqlite_mcp_service: McpService) -> None:
    async with sqlite_mcp_service.agent() as agent:
        tools = {tool.name: tool.annotations for tool in (await agent.list_tools()).tools}

    def hints(name: str) -> tuple[Any, ...]:
        found = tools[name]
        assert found is not None
        return found.read_only_hint, found.destructive_hint, found.idempotent_hint

    assert hints("webhooks_list") == (True, False, True)
    assert hints("webhooks_delete") == (False, True, False)
    assert hints("webhooks_update") == (False, True, True)
    assert hints("projects_create") == (False, False, False)


@pytest.mark.parametrize("scope", sorted(USUAL_SCOPES))
@each_era
async def test_a_key_sees_only_the_tools_that_its_scopes_allow(
    sqlite_mcp_service: McpService, scope: Scope, era: str
) -> None:
    key = await sqlite_mcp_service.new_key([scope])
    implied = {Scope.WEBHOOKS_READ} if scope is Scope.WEBHOOKS_MANAGE else set()
    async with sqlite_mcp_service.agent(key=key, era=era) as agent:
        seen = {tool.name for tool in (await agent.list_tools()).tools}
    assert seen == {tool.name for tool in TOOLS if tool.scope in {scope, *implied}}


@pytest.mark.parametrize("scope", sorted(USUAL_SCOPES))
async def test_a_tool_that_a_key_does_not_see_refuses_and_does_nothing(
    sqlite_mcp_service: McpService, scope: Scope
) -> None:
    key = await sqlite_mcp_service.new_key([scope])
    arguments = await arguments_of_everything(sqlite_mcp_service)
    before = await sqlite_mcp_service.stored()
    async with sqlite_mcp_service.agent(key=key) as agent:
        seen = {tool.name for tool in (await agent.list_tools()).tools}
        for tool in TOOLS:
            if tool.name not in seen:
                answer = await agent.call_tool(tool.name, arguments.get(tool.name, {}))
                assert answer.is_error
                code = "wrong_kind_of_key" if tool in OPERATOR_TOOLS else "missing_scope"
                assert answer.structured_content["error"]["code"] == code
    assert await sqlite_mcp_service.stored() == before


async def test_reading_tools_change_nothing(mcp_service: McpService) -> None:
    arguments = await arguments_of_everything(mcp_service)
    before = await mcp_service.stored()
    for tool in TOOLS:
        if tool.reads:
            await mcp_service.done(tool.name, **arguments.get(tool.name, {}))
    assert await mcp_service.stored() == before


async def test_the_schema_of_every_event_type_can_be_read(sqlite_mcp_service: McpService) -> None:
    async with sqlite_mcp_service.agent() as agent:
        for entry in CATALOG:
            read = await agent.read_resource(f"cuepost://event-types/{entry.name}")
            assert f'"const": "{entry.name}"' in text_in(read.contents[0])
