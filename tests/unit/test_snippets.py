"""The verification code that people copy from the pages does verify."""

import os
import shutil
import subprocess
import time
from typing import Any

import pytest

from cuepost.domain.signing import SigningSecret, signature
from cuepost.interfaces.web.snippets import CURL, PYTHON, SNIPPETS
from tests.support.missing import missing_component

SECRET = SigningSecret(bytes(range(32)))
OTHER = SigningSecret(bytes(32))
BODY = '{"name":"Größe"}'.encode()


def genuine(
    monkeypatch: pytest.MonkeyPatch, *signed_by: SigningSecret, at: int, body: bytes
) -> bool:
    monkeypatch.setenv("CUEPOST_WEBHOOK_SECRET", SECRET.reveal())
    known: dict[str, Any] = {}
    exec(PYTHON, known)
    headers = {
        "webhook-id": "1",
        "webhook-timestamp": str(at),
        "webhook-signature": " ".join(signature(each, "1", at, BODY) for each in signed_by),
    }
    return bool(known["is_genuine"](headers, body))


def test_the_python_snippet_tells_genuine_deliveries_from_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = int(time.time())  # the snippet compares with the real time
    assert genuine(monkeypatch, SECRET, at=now, body=BODY)
    assert genuine(monkeypatch, OTHER, SECRET, at=now, body=BODY)
    assert not genuine(monkeypatch, OTHER, at=now, body=BODY)
    assert not genuine(monkeypatch, SECRET, at=now, body=BODY + b"\n")
    assert not genuine(monkeypatch, SECRET, at=now - 400, body=BODY)


def test_the_shell_snippet_signs_as_we_do() -> None:
    if shutil.which("openssl") is None:
        missing_component("there is no openssl on this machine")
    show = "curl() { :; }\n" + CURL + '\nprintf "%s\\n" "$ID" "$NOW" "$SIGNATURE" "$BODY"'
    made = subprocess.run(
        ["bash", "-euc", show],
        env=os.environ | {"CUEPOST_WEBHOOK_SECRET": SECRET.reveal()},
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    identifier, now, signed, body = made.stdout.splitlines()
    assert f"v1,{signed}" == signature(SECRET, identifier, int(now), body.encode())


def test_the_languages_that_people_ask_for_are_there() -> None:
    names = ["Python", "FastAPI", "Express", "Go", "curl"]
    assert [snippet.name for snippet in SNIPPETS] == names
