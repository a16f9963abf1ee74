import re
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from jsonschema_rs import Draft202012Validator

from cuepost.domain.egress_policy import EgressPolicy, parse_networks
from cuepost.domain.errors import Invalid
from cuepost.domain.event_catalog import CATALOG
from cuepost.domain.person import checked_email
from cuepost.domain.receiver_url import ReceiverUrlRefused, parse_receiver_url
from cuepost.interfaces.rest.openapi.document import openapi_document
from cuepost.interfaces.rest.openapi.examples import example_of
from cuepost.interfaces.rest.openapi.responses import codes_of
from cuepost.interfaces.rest.operation import NoInput, Operation
from cuepost.interfaces.rest.table import OPERATIONS
from cuepost.interfaces.wire_models.paging import PageQuery
from cuepost.interfaces.wire_models.shapes import Request
from tests.application.harness import BASE_URL
from tests.interfaces.rest.client import Api

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
    kinds = {"milestones": "serviceKey", "accounts": "operatorKey", "portal": "operatorKey"}
    assert scheme == kinds.get(operation.scope.partition(":")[0], "accountKey")
    assert scopes == [operation.scope]
    in_path = {each["name"] for each in shown.get("parameters", ()) if each.get("in") == "path"}
    assert in_path == set(re.findall(r"{(\w+)}", operation.path))
    in_query = [each["name"] for each in shown.get("parameters", ()) if each.get("in") == "query"]
    assert in_query == list(operation.query.__struct_encode_fields__)
    assert ("requestBody" in shown) == operation.takes_body
    expected = {str(operation.status), *(str(status) for status in codes_of(operation))}
    expected |= {"304"} if operation.takes_if_none_match else set()
    assert set(shown["responses"]) == expected
    for status, codes in codes_of(operation).items():
        name = shown["responses"][str(status)]["$ref"].rpartition("/")[2]
        response = DOCUMENT["components"]["responses"][name]
        assert response["content"] == {
            "application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}
        }
        assert all(f"`{code}`" in response["description"] for code in codes)


@each_call
def test_examples_fit_their_schemas_and_are_read_again(operation: Operation) -> None:
    for model in (operation.body, operation.answer):
        if model in (None, NoInput) or (example := example_of(model)) is None:
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


def test_a_key_for_idempotency_is_a_header_of_each_call_that_takes_one() -> None:
    reference = {"$ref": "#/components/parameters/Idempotency-Key"}
    listed = {
        operation["operationId"]
        for path in DOCUMENT["paths"].values()
        for operation in path.values()
        if reference in operation.get("parameters", ())
    }
    assert listed == {each.name for each in OPERATIONS if each.takes_idempotency_key}
    parameter = DOCUMENT["components"]["parameters"]["Idempotency-Key"]
    assert (parameter["name"], parameter["in"]) == ("Idempotency-Key", "header")
    assert "required" not in parameter


def test_every_enum_is_a_component_of_its_own() -> None:
    components = DOCUMENT["components"]["schemas"].items()
    named = {name: schema for name, schema in components if "enum" in schema}
    inline = [node for node in nodes(DOCUMENT) if isinstance(node.get("enum"), list)]
    assert {id(node) for node in inline} == {id(schema) for schema in named.values()}
    assert {name: (schema["title"], schema["type"]) for name, schema in named.items()} == {
        name: (name, "string") for name in named
    }
    assert {"DeliveryStatus", "EventTypeName", "Outcome", "Stage"} <= set(named)


def test_schemas_are_joined_only_where_an_event_is_one_of_many() -> None:
    joined = [node for node in nodes(DOCUMENT) if {"oneOf", "allOf", "if", "not"} & node.keys()]
    assert joined == [DOCUMENT["components"]["schemas"]["EventBody"]]
    for node in nodes(DOCUMENT):
        if "anyOf" in node:
            assert [each.get("type") for each in node["anyOf"]].count("null") == 1
            assert len(node["anyOf"]) == 2


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


@pytest.mark.parametrize("model", ["AddMember", "Invite"])
@pytest.mark.parametrize(
    "email",
    ["ada@example.com", "ada@münchen.example", "ada@example", "ada", "a b@c.d", "a@b.c\n", "@b.c"],
)
def test_the_schema_of_an_email_address_judges_as_the_service_does(email: str, model: str) -> None:
    """Only that the service ignores white space around it."""
    try:
        accepted = checked_email(email) == email
    except Invalid:
        accepted = False
    assert validator(model).is_valid({"role": "viewer", "email": email}) == accepted


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


def test_patterns_are_regular_expressions_of_ecma_in_unicode_mode() -> None:
    """There a backslash may only stand before what it changes, and `\\Z` is unknown."""
    opened = openapi_document(OPERATIONS, BASE_URL, EgressPolicy(allow_http=True))
    patterns = {
        node["pattern"]
        for node in nodes([DOCUMENT, opened])
        if isinstance(node.get("pattern"), str)
    }
    assert len(patterns) > 5
    for pattern in patterns:
        escaped = set(re.findall(r"\\(.)", pattern))
        assert escaped <= set(r"^$\.*+?()[]{}|/dDsSwWbBfnrtvxu"), pattern
