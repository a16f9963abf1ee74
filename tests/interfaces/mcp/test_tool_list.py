"""The list of tools is short, and still says everything that is needed to call them."""

import json
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest
from mcp.types import Tool as Listed

from cuepost.domain.delivery import FINAL, DeliveryStatus
from cuepost.domain.event_catalog import BY_NAME, SUBSCRIBABLE
from cuepost.domain.project import ProjectKind
from cuepost.interfaces.mcp.resources import BY_URI, RESULTS
from cuepost.interfaces.mcp.schemas import outline_of, schema_of
from cuepost.interfaces.mcp.server import listed
from cuepost.interfaces.mcp.table import TOOLS
from cuepost.interfaces.mcp.tool import Tool
from tests.interfaces.mcp.agent import (
    ACCOUNT_TOOLS,
    OPERATOR_TOOLS,
    WAYS,
    McpService,
    arguments_of_everything,
    text_in,
)
from tests.interfaces.mcp.test_protocol import each_era, each_tool

LARGEST_LIST = 25_000
# Of these an agent has to know the value; what is left out of the list is titles, examples and
# patterns, which the descriptions say in words.
CONSTRAINTS = ("type", "format", "enum", "minimum", "maximum", "minLength", "maxLength", "maxItems")
ENUMS = {
    "type": list(BY_NAME),
    "status": sorted(DeliveryStatus),
    "statuses": list(FINAL),
    "events": list(SUBSCRIBABLE),
    "kind": sorted(ProjectKind),
}


def parameters(tool: Listed) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = tool.input_schema["properties"]
    return found


def described(schema: Any, root: Any, *, nullable: bool = True) -> Iterator[tuple[str, str]]:
    """Every constraint in the schema, wherever it stands in it."""
    if "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rpartition("/")[2]] | schema
    for name in CONSTRAINTS:
        if name in schema and (nullable or schema[name] != "null"):
            yield name, str(schema[name])
    for inner in (*schema.get("anyOf", ()), *filter(None, [schema.get("items")])):
        yield from described(inner, root, nullable=nullable)


@each_era
async def test_the_whole_list_is_at_most_25_kilobytes(
    sqlite_mcp_service: McpService, era: str
) -> None:
    async with sqlite_mcp_service.agent(era=era) as agent:
        found = await agent.list_tools()
    assert len(found.tools) == len(ACCOUNT_TOOLS)
    assert len(found.model_dump_json(by_alias=True, exclude_none=True).encode()) < LARGEST_LIST


@each_era
async def test_every_tool_says_what_it_does_takes_and_returns(
    sqlite_mcp_service: McpService, era: str
) -> None:
    async with sqlite_mcp_service.agent(era=era) as agent:
        tools = (await agent.list_tools()).tools
    async with sqlite_mcp_service.agent(era=era, key=sqlite_mcp_service.operator) as agent:
        tools += (await agent.list_tools()).tools
    for tool, found in zip([*ACCOUNT_TOOLS, *OPERATOR_TOOLS], tools, strict=True):
        assert found.title
        assert found.description == f"{tool.description} Returns {outline_of(tool.answer)}."
        assert found.output_schema is None
        for name, schema in parameters(found).items():
            assert schema.get("description", "").endswith("."), (tool.name, name)
        hints = found.annotations
        assert hints is not None
        assert None not in (
            hints.read_only_hint,
            hints.destructive_hint,
            hints.idempotent_hint,
            hints.open_world_hint,
        )


@each_tool
def test_every_value_and_bound_of_the_whole_schema_is_listed(tool: Tool) -> None:
    whole, brief = schema_of(tool.arguments), listed(tool).input_schema
    jsonschema_rs.meta.validate(brief)
    assert brief.get("required", []) == whole["required"]
    assert brief["additionalProperties"] is False
    assert brief.get("description") == whole.get("description")
    for name, schema in whole["properties"].items():
        shown = brief["properties"][name]
        assert set(described(schema, whole, nullable=False)) <= set(described(shown, brief)), name
        assert shown.get("default") == schema.get("default"), name


def test_what_can_be_chosen_is_listed() -> None:
    seen = set()
    for tool in TOOLS:
        for name, schema in parameters(listed(tool)).items():
            values = schema.get("items", schema).get("enum")
            if values is not None:
                assert values == ENUMS[name], (tool.name, name)
                seen.add(name)
    assert seen == set(ENUMS)


def test_null_is_listed_only_where_it_means_something() -> None:
    taking_null = {
        (tool.name, name)
        for tool in TOOLS
        for name, schema in parameters(listed(tool)).items()
        if {"type": "null"} in schema.get("anyOf", ())
    }
    assert taking_null == {("projects_update", "access_expires_at")}


def test_an_outline_names_the_fields_and_marks_what_may_be_null() -> None:
    outlines = {tool.name: outline_of(tool.answer) for tool in TOOLS}
    assert outlines["webhooks_delete"] == "{done,id}"
    assert outlines["projects_get"] == (
        "{id,name,kind,origin,status,stage,accessExpiresAt?,createdAt,updatedAt}"
    )
    assert outlines["audit_list"] == (
        "{data:[{id,action,actor,actorName?,interface,address?,subject?,details,at}],nextCursor?}"
    )


@pytest.mark.parametrize("way", WAYS)
@each_era
async def test_every_result_fits_the_schema_that_can_be_read(
    sqlite_mcp_service: McpService, era: str, way: str
) -> None:
    arguments = await arguments_of_everything(sqlite_mcp_service)
    async with sqlite_mcp_service.agent(era=era, way=way) as agent:
        read = await agent.read_resource(RESULTS)
        schemas = json.loads(text_in(read.contents[0]))
        for tool in sorted(ACCOUNT_TOOLS, key=lambda tool: tool.name == "webhooks_delete"):
            given = arguments.get(tool.name, {})
            jsonschema_rs.validate(listed(tool).input_schema, given)
            answer = await agent.call_tool(tool.name, given)
            assert not answer.is_error, (tool.name, answer.content)
            assert answer.structured_content == json.loads(text_in(answer.content[0]))
            one = schemas["properties"][tool.name] | {"$defs": schemas["$defs"]}
            jsonschema_rs.validate(one, answer.structured_content)


def test_the_schemas_that_can_be_read_are_valid_and_strict() -> None:
    schemas = json.loads(BY_URI[RESULTS].text())
    jsonschema_rs.meta.validate(schemas)
    assert list(schemas["properties"]) == [tool.name for tool in TOOLS]
    one = schemas["properties"]["projects_get"] | {"$defs": schemas["$defs"]}
    assert not jsonschema_rs.is_valid(one, {"id": 7})
