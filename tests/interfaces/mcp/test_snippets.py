"""The verification snippets that agents hand out are run against what the service signs."""

import base64
import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest

from cuepost.domain.signing import SigningSecret, signature, signature_header
from cuepost.interfaces.mcp.resources import BY_URI, SNIPPETS
from cuepost.testing import RepeatableEntropy
from tests.support.missing import missing_component
from tests.support.recording_receiver import RecordingReceiver

ENTROPY = RepeatableEntropy()
SECRET, OTHER = SigningSecret(ENTROPY(32)), SigningSecret(ENTROPY(32))
EVENT_ID = "0198c0de-7b2c-7f00-8a1b-2c3d4e5f6071"
BODY = '{"id":"0198c0de","name":"Füße"}'.encode()


def snippet(name: str) -> str:
    return BY_URI[f"cuepost://verification/{name}"].text()


def request_headers(*secrets: SigningSecret, age: int = 0, body: bytes = BODY) -> dict[str, str]:
    timestamp = int(time.time()) - age
    return {
        "webhook-id": EVENT_ID,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": signature_header(secrets, EVENT_ID, timestamp, body),
    }


def good() -> list[dict[str, str]]:
    """Made when asked for: a suite may run for longer than a signature is valid."""
    return [
        request_headers(SECRET),
        request_headers(OTHER, SECRET),
        request_headers(SECRET, age=200),
    ]


def bad() -> list[dict[str, str]]:
    return [
        {},
        request_headers(OTHER),
        request_headers(SECRET, age=400),
        request_headers(SECRET, age=-400),
        request_headers(SECRET, body=BODY + b"\n"),
        request_headers(SECRET) | {"webhook-id": "other"},
        request_headers(SECRET) | {"webhook-timestamp": "1e9"},
        request_headers(SECRET) | {"webhook-signature": "v1,é"},
    ]


def test_each_language_of_the_brief_has_a_snippet() -> None:
    assert list(SNIPPETS) == ["python", "fastapi", "express", "go", "curl"]
    assert all(snippet(name).strip() for name in SNIPPETS)


def test_the_python_snippet_verifies() -> None:
    space: dict[str, Any] = {}
    exec(compile(snippet("python"), "python.txt", "exec"), space)  # it is ours
    verify = space["verify"]
    assert {verify(BODY, headers, SECRET.reveal()) for headers in good()} == {True}
    assert {verify(BODY, headers, SECRET.reveal()) for headers in bad()} == {False}


async def test_the_fastapi_snippet_verifies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUE_SECRET", SECRET.reveal())
    space: dict[str, Any] = {"__name__": "snippet"}
    exec(compile(snippet("fastapi"), "fastapi.txt", "exec"), space)  # it is ours
    transport = httpx2.ASGITransport(space["app"])
    async with httpx2.AsyncClient(transport=transport, base_url="http://test") as client:
        statuses = [
            (await client.post("/cuepost", content=BODY, headers=headers)).status_code
            for headers in (*good(), *bad()[:-1])
        ]
    assert statuses == [204] * len(good()) + [401] * (len(bad()) - 1)


def test_the_express_snippet_verifies(tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        missing_component("no node on PATH, so the snippet for Express was not run")
    (tmp_path / "receiver.js").write_text(snippet("express"))
    (tmp_path / "ask.js").write_text(
        "const { isGenuine } = require('./receiver.js');\n"
        "const [body, ...all] = JSON.parse(require('node:fs').readFileSync(0));\n"
        "const answers = all.map((each) => isGenuine(Buffer.from(body, 'base64'), each));\n"
        "console.log(JSON.stringify(answers));\n"
    )
    answers = _asked([node, str(tmp_path / "ask.js")])
    assert answers == [True] * len(good()) + [False] * len(bad())


def _asked(program: list[str]) -> Any:
    asked = json.dumps([base64.b64encode(BODY).decode(), *good(), *bad()])
    ran = subprocess.run(
        program,
        input=asked,
        env={**os.environ, "CUE_SECRET": SECRET.reveal()},
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    return json.loads(ran.stdout)


def test_the_curl_snippet_signs_as_the_service_does(tmp_path: Path) -> None:
    for needed in ("curl", "openssl"):
        if shutil.which(needed) is None:
            missing_component(f"no {needed} on PATH, so the snippet for curl was not run")
    script = tmp_path / "signed.sh"
    script.write_text(snippet("curl"))
    with RecordingReceiver() as receiver:
        ran = subprocess.run(
            ["bash", str(script), receiver.url("/cue")],
            env={**os.environ, "CUE_SECRET": SECRET.reveal()},
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        assert (ran.returncode, ran.stderr) == (0, "")
        [seen] = receiver.seen()
    assert ran.stdout.startswith("2")
    timestamp = int(seen.headers["webhook-timestamp"])
    expected = signature(SECRET, seen.event_id, timestamp, seen.body)
    assert seen.headers["webhook-signature"] == expected
