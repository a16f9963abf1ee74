"""The doctor explains what someone's own code does differently, and reads what people paste."""

import hashlib
import hmac
import json
from base64 import b64decode
from typing import Any

import pytest

from cuepost_receiver.doctor import Cause, Diagnosis, diagnose
from packages.receiver.tests.signing import (
    EVENT_ID,
    NOW,
    SECRET,
    Delivery,
    signature,
    signature_with,
)

GOOD = Delivery()

KEY = b64decode(SECRET.removeprefix("whsec_"))

TEXT = GOOD.body.decode()

SIGNED = f"{EVENT_ID}.{NOW}.".encode() + GOOD.body


def look_at(
    body: Any = GOOD.body, secrets: Any = SECRET, *, now: float = NOW, **changed: str | None
) -> Diagnosis:
    renamed = {name.replace("_", "-"): value for name, value in changed.items()}
    merged: dict[str, str | None] = {**GOOD.headers, **renamed}
    headers = {name: value for name, value in merged.items() if value is not None}
    return diagnose(headers, body, secrets, now=now)


def signed(key: bytes, content: bytes, name: str = "sha256") -> bytes:
    return hmac.new(key, content, name).digest()


def as_go_writes() -> bytes:
    text = json.dumps(json.loads(GOOD.body), sort_keys=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026").encode()


BARE = SECRET.removeprefix("whsec_")

OWN_CODE = {
    "prefix kept": (signature_with(SECRET.encode(), SIGNED), Cause.SECRET_PREFIX_KEPT),
    "prefix before the key": (signature_with(b"whsec_" + KEY, SIGNED), Cause.SECRET_PREFIX_KEPT),
    "not decoded": (signature_with(BARE.encode(), SIGNED), Cause.SECRET_NOT_DECODED),
    "body alone": (signature_with(KEY, GOOD.body), Cause.OTHER_CONTENT_SIGNED),
    "without the id": (
        signature_with(KEY, f"{NOW}.".encode() + GOOD.body),
        Cause.OTHER_CONTENT_SIGNED,
    ),
    "swapped": (signature(SECRET, str(NOW), EVENT_ID, GOOD.body), Cause.ID_AND_TIMESTAMP_SWAPPED),
    "SHA-512": ("v1," + signed(KEY, SIGNED, "sha512").hex(), Cause.COMPUTED_DIFFERENTLY),
    "hex": (hashlib.sha256(b"").hexdigest(), Cause.COMPUTED_DIFFERENTLY),
    "right, in hex": (signed(KEY, SIGNED).hex(), Cause.SIGNATURE_IN_HEX),
    "right": (GOOD.signature, Cause.VALID),
    "right without v1": (GOOD.signature[3:], Cause.VALID),
    "rewritten body": (
        signature(SECRET, EVENT_ID, NOW, as_go_writes()),
        Cause.COMPUTED_DIFFERENTLY,
    ),
    "nonsense": ("nonsense", Cause.COMPUTED_DIFFERENTLY),
}


@pytest.mark.parametrize(("computed", "cause"), OWN_CODE.values(), ids=OWN_CODE)
def test_what_the_receivers_own_code_does_differently_is_named(computed: str, cause: Cause) -> None:
    found = diagnose(GOOD.headers, GOOD.body, SECRET, now=NOW, computed=computed)
    assert found.cause is cause


@pytest.mark.parametrize(
    ("made", "cause"),
    [
        (signature_with(SECRET.encode(), SIGNED), Cause.SECRET_PREFIX_KEPT),
        (signature_with(BARE.encode(), SIGNED), Cause.SECRET_NOT_DECODED),
        (signature_with(KEY, GOOD.body), Cause.OTHER_CONTENT_SIGNED),
    ],
)
def test_a_sender_that_signs_in_another_way_is_named(made: str, cause: Cause) -> None:
    assert look_at(webhook_signature=made).cause is cause


@pytest.mark.parametrize(
    "pasted",
    [
        "\n".join(f"{name.title()}: {value}" for name, value in GOOD.headers.items()),
        "POST /hook HTTP/1.1\r\n"
        + "\r\n".join(f"{name}:{value}" for name, value in GOOD.headers.items()),
        json.dumps(GOOD.headers | {"x-forwarded-for": ["1.2.3.4"]}),
        " \\\n".join(f"  -H '{name}: {value}'" for name, value in GOOD.headers.items()),
    ],
    ids=["lines", "request", "JSON", "curl"],
)
def test_headers_may_be_pasted_as_text(pasted: str) -> None:
    assert diagnose(pasted, TEXT, SECRET, now=NOW).is_valid


def test_pasted_text_that_is_no_headers_misses_all_three() -> None:
    for pasted in ("", "[]", "nothing of the kind"):
        found = diagnose(pasted, TEXT, SECRET, now=NOW)
        assert found.facts["missing"] == "webhook-id, webhook-timestamp, webhook-signature"
