"""What programs and language models read first leads to what is there."""

import re

import jsonschema_rs
import pytest

from cuepost.domain.event_catalog import CATALOG, EventType
from tests.application.harness import BASE_URL
from tests.interfaces.rest.client import Api

LINK = re.compile(rf"\]\({re.escape(BASE_URL)}(/[^)]+)\)")


async def test_llms_txt_is_open_and_its_links_lead_somewhere(sqlite_api: Api) -> None:
    answer = await sqlite_api.call("GET", "/llms.txt", key="")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/markdown; charset=utf-8"
    title, _, summary = answer.text.splitlines()[:3]
    assert (title, summary[:2]) == ("# cuepost", "> ")
    links = LINK.findall(answer.text)
    assert {f"/schemas/{entry.name}.json" for entry in CATALOG} < set(links)
    # Another interface answers to agents.
    for path in set(links) - {"/mcp"}:
        assert (await sqlite_api.call("GET", path, key="")).status_code == 200, path


@pytest.mark.parametrize("entry", CATALOG, ids=lambda entry: entry.name)
async def test_the_schema_of_an_event_is_open_and_fits_its_sample(
    sqlite_api: Api, entry: EventType
) -> None:
    path = f"/schemas/{entry.name}.json"
    answer = await sqlite_api.call("GET", path, key="")
    assert answer.headers["content-type"] == "application/schema+json"
    schema = answer.json()
    assert (schema["$id"], schema["title"]) == (f"{BASE_URL}{path}", entry.name)
    jsonschema_rs.meta.validate(schema)
    validator = jsonschema_rs.validator_for(schema, validate_formats=True)
    assert validator.is_valid(entry.sample())
    assert not validator.is_valid(entry.sample() | {"type": "another"})


async def test_the_schema_of_an_unknown_event_is_not_found(sqlite_api: Api) -> None:
    assert (await sqlite_api.call("GET", "/schemas/nothing.json", key="")).status_code == 404


@pytest.mark.parametrize("path", ["/schemas", "/schemas/"])
async def test_the_schemas_have_an_index_that_leads_to_each(sqlite_api: Api, path: str) -> None:
    answer = await sqlite_api.call("GET", path, key="")
    assert list(answer.json()) == [entry.name for entry in CATALOG]
    for place in answer.json().values():
        found = await sqlite_api.call("GET", place.removeprefix(BASE_URL), key="")
        assert found.json()["$id"] == place
