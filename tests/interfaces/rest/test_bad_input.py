"""Whatever a client sends: a problem document with 4xx, and nothing stored."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from cuepost.interfaces.rest.operation import Operation
from cuepost.interfaces.rest.table import OPERATIONS
from tests.interfaces.rest.client import URL, Api, faults, problem

JSON = {"Content-Type": "application/json"}
GOOD = json.dumps({"url": URL}).encode()
DEEP = 30_000


async def send(
    api: Api, content: bytes | AsyncIterator[bytes], headers: dict[str, str] | None = None
) -> httpx2.Response:
    chosen = JSON if headers is None else headers
    return await api.call("POST", "/v1/webhooks", content=content, headers=chosen)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "malformed_json"),
        (b"{", "malformed_json"),
        (b"nonsense", "malformed_json"),
        (GOOD + b" x", "malformed_json"),
        (GOOD + GOOD, "malformed_json"),
        (b"\xef\xbb\xbf" + GOOD, "malformed_json"),
        (GOOD.decode().encode("utf-16"), "malformed_json"),
        (b'{"url": "\xff"}', "malformed_json"),
        (b'{"url": 1, "x": "\xff"}', "malformed_json"),
        (rb'{"url": "\ud800"}', "malformed_json"),
        (rb'{"url": "\udc00\ud800"}', "malformed_json"),
        (rb'{"url": 5, "events": "\ud800"}', "malformed_json"),
        (b'{"url": NaN}', "malformed_json"),
        (b'{"url": Infinity}', "malformed_json"),
        (b'{"url": 01}', "malformed_json"),
        (b"{'url': 1}", "malformed_json"),
        (b'{"url": "a\x00b"}', "malformed_json"),
        (b'{"url": 1, ' + b"[" * DEEP, "malformed_json"),
        (b"[" * DEEP, "malformed_json"),
        (b"[" * DEEP + b"]" * DEEP, "malformed_json"),
        (b'{"a":' * DEEP + b"1" + b"}" * DEEP, "payload_too_large"),
        (b'{"a":' * 9_000 + b"1" + b"}" * 9_000, "malformed_json"),
        (b'{"url": "https://a.io/", "url": "https://b.io/"}', "duplicate_key"),
        (rb'{"url": "https://a.io/", "\u0075rl": "https://b.io/"}', "duplicate_key"),
        (rb'{"url": "https://a.io/\\", "url": "https://b.io/"}', "duplicate_key"),
        (b'{"url": 5, "url": 6}', "duplicate_key"),
        (b'{"x": {"y": 1, "y": 1}}', "duplicate_key"),
        (b'{"x": 1' + b"0" * 5_000 + b', "x": 1}', "duplicate_key"),
        (b'{"url": 1e999, "url": 1}', "duplicate_key"),
    ],
)
async def test_what_is_not_readable_json_is_refused(api: Api, body: bytes, code: str) -> None:
    before = await api.stored()
    status = 413 if code == "payload_too_large" else 400
    assert problem(await send(api, body)) == (status, code)
    assert await api.stored() == before


@pytest.mark.parametrize(
    ("body", "field", "code"),
    [
        ([], "body", "wrong_type"),
        ("text", "body", "wrong_type"),
        (5, "body", "wrong_type"),
        ({}, "url", "missing_field"),
        ({"url": None}, "url", "wrong_type"),
        ({"url": 5}, "url", "wrong_type"),
        ({"url": ["a"]}, "url", "wrong_type"),
        ({"url": URL, "secret": "mine"}, "secret", "unknown_field"),
        ({"url": URL, "x\x00😀" + "y" * 200: 1}, "x�😀" + "y" * 97, "unknown_field"),
        ({"url": URL, "events": "project.ready"}, "events", "wrong_type"),
        ({"url": URL, "events": [1]}, "events[0]", "wrong_type"),
        ({"url": URL, "events": ["project.ready", None]}, "events[1]", "wrong_type"),
        ({"url": URL, "events": ["x" * 101]}, "events[0]", "too_long"),
        ({"url": URL, "events": ["project.ready"] * 51}, "events", "too_long"),
        ({"url": URL, "description": "x" * 501}, "description", "too_long"),
        ({"url": URL, "description": "a\x00b"}, "description", "invalid_characters"),
        ({"url": URL, "description": "a\x85b"}, "description", "invalid_characters"),
        ({"url": "x" * 8_193}, "url", "too_long"),
        ({"url": "https://a.example.com/" + "x" * 2_048}, "url", "url_too_long"),
        ({"url": "https://a.example.com/\x00"}, "url", "url_has_control_characters"),
        ({"url": "https://a.example.com/\n"}, "url", "url_has_control_characters"),
    ],
)
async def test_what_is_not_valid_is_named_and_nothing_is_stored(
    api: Api, body: Any, field: str, code: str
) -> None:
    before = await api.stored()
    answer = await api.call("POST", "/v1/webhooks", body)
    assert faults(answer) == [(field, code)]
    [error] = answer.json()["errors"]
    assert answer.json()["detail"] == f"{field}: {error['message']}"
    assert await api.stored() == before


@pytest.mark.parametrize(
    ("body", "field", "code"),
    [
        ({"name": ""}, "name", "too_short"),
        ({"name": "x" * 201}, "name", "too_long"),
        ({"name": "a\x00"}, "name", "invalid_characters"),
        ({"name": "a\n"}, "name", "invalid_characters"),
        ({"name": "a\tb"}, "name", "invalid_characters"),
        ({"name": "a", "kind": "film"}, "kind", "invalid_value"),
        ({"name": "a", "kind": 1}, "kind", "wrong_type"),
        ({"name": "a", "accessExpiresAt": 1767225600}, "accessExpiresAt", "wrong_type"),
        ({"name": "a", "accessExpiresAt": "tomorrow"}, "accessExpiresAt", "invalid_time"),
        (
            {"name": "a", "accessExpiresAt": "0001-01-01T00:00:00Z"},
            "accessExpiresAt",
            "time_out_of_range",
        ),
        (
            {"name": "a", "accessExpiresAt": "9999-12-31T23:59:59-00:01"},
            "accessExpiresAt",
            "time_out_of_range",
        ),
    ],
)
async def test_a_project_that_is_not_valid_is_not_stored(
    api: Api, body: Any, field: str, code: str
) -> None:
    before = await api.stored()
    assert faults(await api.call("POST", "/v1/projects", body)) == [(field, code)]
    assert await api.stored() == before


async def test_all_that_is_not_a_control_character_can_be_stored(api: Api) -> None:
    name = 'schön \u200b\ufeff\uffff 🎬 "quoted" \\ \'; DROP TABLE projects; --'
    made = await api.done("POST", "/v1/projects", {"name": name})
    assert (await api.done("GET", f"/v1/projects/{made['id']}"))["name"] == name


@pytest.mark.parametrize(
    "kind",
    [
        None,
        "",
        "text/plain",
        "application/jsonp",
        "application/problem+json",
        "application/json; charset=latin-1",
        "application/json, text/plain",
        "multipart/form-data; boundary=x",
    ],
)
async def test_another_media_type_is_refused(sqlite_api: Api, kind: str | None) -> None:
    answer = await send(sqlite_api, GOOD, {} if kind is None else {"Content-Type": kind})
    assert problem(answer) == (415, "unsupported_media_type")
    assert answer.headers["accept"] == "application/json"


async def test_a_compressed_body_is_refused(sqlite_api: Api) -> None:
    answer = await send(sqlite_api, GOOD, JSON | {"Content-Encoding": "gzip"})
    assert problem(answer) == (415, "unsupported_media_type")


@pytest.mark.parametrize(
    "kind",
    ["application/json", "Application/JSON", "application/json;charset=UTF-8",
     'application/json ; charset="utf-8"'],
)  # fmt: skip
async def test_json_may_be_announced_in_these_ways(sqlite_api: Api, kind: str) -> None:
    answer = await send(sqlite_api, GOOD, {"Content-Type": kind})
    assert answer.status_code == 201


async def chunks(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


async def test_a_body_in_pieces_is_put_together(sqlite_api: Api) -> None:
    answer = await send(sqlite_api, chunks(*(bytes([byte]) for byte in GOOD)))
    assert answer.status_code == 201


async def test_a_body_of_64_kibibytes_is_taken_and_a_longer_one_is_not(sqlite_api: Api) -> None:
    padded = GOOD + b" " * (64 * 1024 - len(GOOD))
    assert (await send(sqlite_api, padded)).status_code == 201
    assert problem(await send(sqlite_api, padded + b" ")) == (413, "payload_too_large")


async def test_an_endless_body_is_cut_off_whatever_its_headers_say(sqlite_api: Api) -> None:
    taken = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal taken
        while True:
            taken += 1
            yield b" " * 1024

    for headers in (JSON, JSON | {"Content-Length": "10"}):
        taken = 0
        assert problem(await send(sqlite_api, endless(), headers)) == (413, "payload_too_large")
        assert taken == 65


@pytest.mark.parametrize("length", ["99999999999999999999999999", "-1", "ten"])
async def test_a_senseless_length_is_refused_before_the_body_is_read(
    sqlite_api: Api, length: str
) -> None:
    answer = await send(sqlite_api, GOOD, JSON | {"Content-Length": length})
    assert problem(answer) == (413, "payload_too_large")


WITHOUT_BODY = [o for o in OPERATIONS if o.method == "POST" and not o.takes_body]


@pytest.mark.parametrize("operation", WITHOUT_BODY, ids=lambda operation: operation.name)
async def test_a_call_without_a_body_takes_an_empty_object_and_no_other(
    api: Api, operation: Operation
) -> None:
    endpoint = (await api.harness.endpoint()).view.endpoint
    project = await api.harness.project()
    path = operation.path.replace("{webhookId}", str(endpoint.id))
    path = path.replace("{projectId}", str(project.id)).replace("{deliveryId}", str(project.id))
    path = path.replace("{accountId}", str(api.harness.account.id))
    path = path.replace("{invitationId}", str(project.id))
    before, key = await api.stored(), api.key_for(operation)
    refused = await api.call("POST", path, {"colour": "red"}, key=key)
    assert faults(refused) == [("colour", "unknown_field")]
    plain = await api.call(
        "POST", path, content=b"{}", headers={"Content-Type": "text/plain"}, key=key
    )
    assert problem(plain) == (415, "unsupported_media_type")
    malformed = await api.call("POST", path, content=b"{", headers=JSON, key=key)
    assert problem(malformed) == (400, "malformed_json")
    assert await api.stored() == before
    empty = await api.call("POST", path, {}, key=key)
    assert empty.status_code in {operation.status, 404, 409}
