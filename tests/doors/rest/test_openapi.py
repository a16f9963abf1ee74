import re
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from jsonschema_rs import Draft202012Validator

from cuepost.domain.egress_policy import EgressPolicy, parse_networks
from cuepost.domain.event_catalog import CATALOG
from cuepost.domain.project import STAGE_OF, ProjectStatus, Stage
from cuepost.domain.receiver_url import ReceiverUrlRefused, parse_receiver_url
from cuepost.doors.rest.openapi.document import openapi_document
from cuepost.doors.rest.openapi.examples import example_of
from cuepost.doors.rest.openapi.responses import codes_of
from cuepost.doors.rest.operation import Nothing, Operation
from cuepost.doors.rest.table import OPERATIONS
from cuepost.doors.wire_models.paging import PageQuery
from cuepost.doors.wire_models.shapes import Request
from tests.application.world import BASE_URL
from tests.doors.rest.client import Api

DOCUMENT = openapi_document(OPERATIONS, BASE_URL, EgressPolicy())
each_call = pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)


def validator(name: str) -> Draft202012Validator:
    whole = {"$ref": f"#/components/schemas/{name}", "components": DOCUMENT["components"]}
    return Draft202012Validator(whole, validate_formats=True)


def nodes(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
    for each in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from nodes(each)


def test_the_document_is_openapi_3_1_by_its_own_schema() -> None:
    import schemathesis  # noqa: PLC0415  # takes long, and is needed here alone

    schema = schemathesis.openapi.from_dict(DOCUMENT)
    schema.validate()
    assert DOCUMENT["openapi"] == "3.1.0"
    assert DOCUMENT["servers"] == [{"url": BASE_URL}]
    assert len(list(schema.get_all_operations())) == len(OPERATIONS)


def test_every_schema_is_one() -> None:
    for name in DOCUMENT["components"]["schemas"]:
        validator(name)


def test_every_reference_leads_somewhere() -> None:
    for node in nodes(DOCUMENT):
        if "$ref" in node:
            found: Any = DOCUMENT
            for step in node["$ref"].removeprefix("#/").split("/"):
                found = found[step]


@each_call
def test_a_call_tells_its_scope_its_parameters_and_every_refusal(operation: Operation) -> None:
    shown = DOCUMENT["paths"][operation.path][operation.method.lower()]
    assert shown["operationId"] == operation.name
    assert f"`{operation.scope}`" in shown["description"]
    [[scheme, scopes]] = [next(iter(each.items())) for each in shown["security"]]
    assert scheme == ("serviceKey" if operation.scope == "milestones:report" else "accountKey")
    assert scopes == [operation.scope]
    in_path = {each["name"] for each in shown.get("parameters", ()) if each["in"] == "path"}
    assert in_path == set(re.findall(r"{(\w+)}", operation.path))
    in_query = [each["name"] for each in shown.get("parameters", ()) if each["in"] == "query"]
    assert in_query == list(operation.query.__struct_encode_fields__)
    assert ("requestBody" in shown) == operation.takes_body
    expected = {str(operation.status), *(str(status) for status in codes_of(operation))}
    assert set(shown["responses"]) == expected
    for status, codes in codes_of(operation).items():
        name = shown["responses"][str(status)]["$ref"].rpartition("/")[2]
        response = DOCUMENT["components"]["responses"][name]
        [content] = response["content"].values()
        told = content["schema"]["allOf"][1]["properties"]
        assert told.get("code", {"enum": codes}) == {"enum": codes}
        assert all(f"`{code}`" in response["description"] for code in codes)


@each_call
def test_examples_fit_their_schemas_and_are_read_again(operation: Operation) -> None:
    for model in (operation.body, operation.answer):
        if model in (None, Nothing) or (example := example_of(model)) is None:
            continue
        assert validator(model.__name__).is_valid(example)
        if issubclass(model, Request):
            assert msgspec.to_builtins(msgspec.convert(example, model)) == example


def test_every_body_has_an_example() -> None:
    assert [each.name for each in OPERATIONS if each.takes_body and not example_of(each.body)] == []


def models(kind: type[Request]) -> Iterator[type[Request]]:
    for child in kind.__subclasses__():
        yield child
        yield from models(child)


@pytest.mark.parametrize(
    "model", [each for each in models(Request) if not issubclass(each, PageQuery)]
)
def test_optional_fields_of_bodies_are_unset_when_they_are_left_out(model: type[Request]) -> None:
    """Doubled keys are found by writing a body again, so nothing may be added to it."""
    for field in msgspec.structs.fields(model):
        assert field.required or field.default is msgspec.UNSET


def test_the_webhooks_section_has_every_event_with_its_headers_and_sample() -> None:
    assert list(DOCUMENT["webhooks"]) == [entry.name for entry in CATALOG]
    for entry in CATALOG:
        shown = DOCUMENT["webhooks"][entry.name]["post"]
        names = [each["name"] for each in shown["parameters"]]
        assert names == ["webhook-id", "webhook-timestamp", "webhook-signature"]
        content = shown["requestBody"]["content"]["application/json"]
        assert content["example"] == entry.sample()
        assert validator(content["schema"]["$ref"].rpartition("/")[2]).is_valid(entry.sample())
        assert validator("EventBody").is_valid(entry.sample())


def report(status: str, **more: Any) -> dict[str, Any]:
    return {
        "reportId": "r",
        "projectId": "0198c0de-5a3b-7d21-9c4e-3f6a5b7c8d90",
        "status": status,
    } | more


@pytest.mark.parametrize("status", ProjectStatus)
def test_the_schema_of_a_milestone_knows_what_may_stand_beside_each_status(
    status: ProjectStatus,
) -> None:
    artifact = {"kind": "a", "name": "b", "key": "c", "contentType": "d", "sizeBytes": 1}
    valid = validator("MilestoneReport").is_valid
    assert valid(report(status))
    assert valid(report(status, stage=None, error=None, artifacts=[], occurredAt=None))
    for stage in Stage:
        assert valid(report(status, stage=stage.value)) == (STAGE_OF.get(status, stage) is stage)
    error = {"code": "a", "message": "b"}
    assert valid(report(status, error=error)) == (status is ProjectStatus.FAILED)
    assert valid(report(status, artifacts=[artifact])) == (status is ProjectStatus.COMPLETED)


@pytest.mark.parametrize(
    "url",
    [
        "https://hooks.example.com/cue",
        "https://a.co",
        "https://a.co:443/?x=1&y=[2]",
        "https://" + "a." * 8 + "com/",
        "http://a.co/",
        "https://a.co:444/",
        "https://localhost/",
        "https://a.test/",
        "https://a.internal:443/",
        "https://u@a.co/",
        "https://a.co/#x",
        "https://a.co/ x",
        "https://a.co/\\",
        "https://a.co/\n",
        "https://127.1/",
        "https:///x",
        "a.co",
    ],
)
def test_the_schema_of_a_url_judges_names_as_the_service_does(url: str) -> None:
    try:
        parse_receiver_url(url, EgressPolicy())
        accepted = True
    except ReceiverUrlRefused:
        accepted = False
    assert validator("CreateWebhook").is_valid({"url": url}) == accepted


def test_an_opened_policy_widens_the_schema_of_a_url() -> None:
    policy = EgressPolicy(parse_networks("127.0.0.0/8"), ((443, 443), (3000, 3000)), True)
    opened = openapi_document(OPERATIONS, BASE_URL, policy)["components"]["schemas"]
    pattern = opened["CreateWebhook"]["properties"]["url"]["pattern"]
    assert re.search(pattern, "http://127.0.0.1:3000/hook")
    assert not re.search(pattern, "ftp://127.0.0.1/")


async def test_the_document_is_served_as_it_is_made(sqlite_api: Api) -> None:
    answer = await sqlite_api.call("GET", "/openapi.json", key="")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == msgspec.to_builtins(DOCUMENT)


def test_no_pattern_keeps_what_only_python_understands() -> None:
    patterns = [node["pattern"] for node in nodes(DOCUMENT) if isinstance(node.get("pattern"), str)]
    assert patterns
    assert not [pattern for pattern in patterns if r"\Z" in pattern]
