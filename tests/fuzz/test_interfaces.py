"""Whatever is sent to an interface, it answers once, in time, and never that it has broken."""

import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import inspect

from cuepost.domain.access import KeyKind, kind_of
from cuepost.interfaces.mcp.table import TOOLS
from cuepost.interfaces.mcp.tool import Tool
from cuepost.interfaces.rest.operation import Operation
from cuepost.interfaces.rest.table import OPERATIONS
from cuepost.interfaces.web.app import OPERATOR_PAGES, PAGES
from tests.fuzz.malformed import (
    DEEP,
    EXAMPLES,
    IDS,
    anything,
    blobs,
    documents,
    near,
    texts,
    visible,
)
from tests.fuzz.target import FuzzTarget, Headers

FIELDS = (
    *("url", "events", "description", "name", "email", "password", "current", "next", "once"),
    *("confirm", "since", "until", "status", "type", "answer", "headers", "body", "scopes"),
)
CONDITIONS = (b"range", b"if-range", b"if-match", b"if-none-match", b"if-modified-since")
JSON: Headers = [(b"content-type", b"application/json")]

headers_of_conditions = st.lists(
    st.tuples(
        st.sampled_from(CONDITIONS),
        visible("bytes=0-5", '"v1"', "Fri, 02 Jan 2026 00:00:00 GMT").map(
            lambda text: text.encode("latin-1")
        ),
    ),
    max_size=3,
)
# Waiting for events would take its time, as it should; the query itself is read elsewhere.
queries = blobs("limit=5&cursor=AAAA", "status=failed&since=2026-01-02T03:04:05Z", "note=x").filter(
    lambda raw: b"wait" not in raw
)
forms = st.dictionaries(
    st.sampled_from(FIELDS),
    texts(
        "https://hooks.example.com/", "ada@example.com", "2026-01-02T03:04", "webhooks:read", "ok"
    ),
    max_size=6,
)


def fuzzed(**inputs: st.SearchStrategy[Any]) -> Callable[[Any], Any]:
    """The interface stays open over all examples, and is no worse for any of them."""
    relaxed = settings(
        max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck)
    )
    return lambda test: relaxed(given(**inputs)(test))


def filled(path: str, target: FuzzTarget, replacement: str | None) -> str:
    """The path with ids of things that exist, or with something else in the place of each."""

    def chosen(match: re.Match[str]) -> str:
        words = match[1].split("_")
        name = words[0] + "".join(map(str.title, words[1:]))
        return target.ids.get(name, IDS[0]) if replacement is None else replacement

    return re.sub(r"\{(\w+)\}", chosen, path)


def bearer(key: str) -> tuple[bytes, bytes]:
    return b"authorization", f"Bearer {key}".encode()


replacements = st.none() | texts(*IDS).map(lambda text: text.replace("/", ""))


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
@fuzzed(
    data=st.data(),
    query=queries | st.just(b""),
    replacement=replacements,
    key=st.none() | visible("abc"),
)
def test_a_call_of_the_api(
    target: FuzzTarget,
    operation: Operation,
    *,
    data: st.DataObject,
    query: bytes,
    replacement: str | None,
    key: str | None,
) -> None:
    body = data.draw(documents(operation.body)) if operation.takes_body else b""
    keys = {
        KeyKind.ACCOUNT: target.account_key,
        KeyKind.SERVICE: target.service_key,
        KeyKind.OPERATOR: target.operator_key,
    }
    headers = [*JSON, bearer(keys[kind_of(frozenset({operation.scope}))])]
    if key is not None:
        headers.append((b"idempotency-key", key.encode("latin-1")))
    path = filled(operation.path, target, replacement)
    status, _ = target.answer(operation.method, path, query=query, headers=headers, body=body)
    assert status < 500


@fuzzed(value=visible("Bearer cpk_01990000000070008000000000000021" + "A" * 43))
def test_a_key_that_was_never_issued(target: FuzzTarget, value: str) -> None:
    headers = [(b"authorization", value.encode("latin-1"))]
    status, _ = target.answer("GET", "/v1/projects", headers=headers)
    assert status == 401


@pytest.mark.parametrize("path", [page.path for page in (*PAGES, *OPERATOR_PAGES)])
@fuzzed(
    query=queries, form=forms, replacement=replacements, method=st.sampled_from(["GET", "POST"])
)
def test_a_page(
    target: FuzzTarget,
    path: str,
    *,
    query: bytes,
    form: dict[str, str],
    replacement: str | None,
    method: str,
) -> None:
    form = {"_token": target.form_token, **form}
    body = "&".join(f"{name}={quote(text, errors='replace')}" for name, text in form.items())
    status, _ = target.answer(
        method,
        filled(path, target, replacement),
        query=query,
        headers=[
            (b"cookie", f"__Host-cuepost={target.cookie}".encode()),
            (b"sec-fetch-site", b"same-origin"),
        ],
        body=body.encode() if method == "POST" else b"",
    )
    assert status < 500


@fuzzed(
    cookie=visible("__Host-cuepost=CQkJ; __Host-cuepost-browser=a"), body=blobs("_token=a&email=b")
)
def test_cookies_and_forms_of_strangers(target: FuzzTarget, cookie: str, body: bytes) -> None:
    headers = [(b"cookie", cookie.encode("latin-1"))]
    status, _ = target.answer("GET", "/settings/webhooks", headers=headers)
    assert status == 303
    status, _ = target.answer("POST", "/sign-in", headers=headers, body=body)
    assert status in {400, 403}


@pytest.mark.parametrize(("is_signed_in", "expected"), [(True, 200), (False, 303)])
def test_a_page_is_shown_whatever_bytes_are_behind_its_address(
    target: FuzzTarget, is_signed_in: bool, expected: int
) -> None:
    cookie = [(b"cookie", f"__Host-cuepost={target.cookie}".encode())]
    status, _ = target.answer(
        "GET", "/settings/webhooks", query=b"\x80", headers=cookie if is_signed_in else []
    )
    assert status == expected


@fuzzed(edits=st.none() | texts("A" * 116), headers=headers_of_conditions)
def test_a_download(target: FuzzTarget, edits: str | None, headers: Headers) -> None:
    replacement = (edits or "").replace("/", "")
    path = target.media_link if edits is None else f"/media/{replacement}"
    status, _ = target.answer("GET", path, headers=headers)
    assert status in ({200, 206, 304, 412, 416} if edits is None else {404})


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
@fuzzed(data=st.data())
def test_a_tool_for_agents(target: FuzzTarget, tool: Tool, data: st.DataObject) -> None:
    arguments = data.draw(near(inspect.type_info(tool.arguments)) | anything)
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": tool.name, "arguments": arguments},
    }
    is_operators = kind_of(frozenset({tool.scope})) is KeyKind.OPERATOR
    key = target.operator_key if is_operators else target.account_key
    speak(target, json.dumps(call).encode(), key)


@fuzzed(
    body=anything.map(lambda it: json.dumps(it).encode())
    | blobs('{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}', *DEEP)
)
def test_a_message_of_an_agent(target: FuzzTarget, body: bytes) -> None:
    speak(target, body, target.account_key)


def speak(target: FuzzTarget, message: bytes, key: str) -> None:
    status, answer = target.answer(
        "POST",
        "/mcp",
        headers=[
            *JSON,
            bearer(key),
            (b"host", b"cuepost.example.com"),
            (b"accept", b"application/json, text/event-stream"),
        ],
        body=message,
    )
    assert status < 500
    assert b"internal_error" not in answer
