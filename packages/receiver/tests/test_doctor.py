"""The doctor names the one thing that was broken."""

import gzip
import hmac
import json
from base64 import b64decode, b64encode, urlsafe_b64encode
from typing import Any

import pytest

from cuepost_receiver.doctor import Cause, Diagnosis, diagnose
from cuepost_receiver.doctor.causes import WORDS
from packages.receiver.tests.signing import (
    EVENT_ID,
    NOW,
    OTHER_SECRET,
    SECRET,
    Delivery,
    event_body,
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


def test_a_good_delivery_is_valid() -> None:
    found = look_at(secrets=[OTHER_SECRET, SECRET], now=NOW + 12)
    assert found.is_valid
    assert found.as_dict() == {
        "valid": True,
        "cause": "valid",
        "sentence": "The signature is valid: it was made with secret 2 of 2, 12 seconds ago.",
        "remedy": "Nothing has to be fixed.",
        "facts": {"secret_number": 2, "secret_count": 2, "age": "12 seconds"},
    }


def in_another_order() -> bytes:
    return json.dumps(json.loads(GOOD.body), sort_keys=True).encode()


def as_go_writes() -> bytes:
    text = json.dumps(json.loads(GOOD.body), sort_keys=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026").encode()


BODIES = {
    "parsed and written by Python": (json.dumps(json.loads(TEXT)).encode(), Cause.BODY_REWRITTEN),
    "pretty printed": (json.dumps(json.loads(TEXT), indent=2).encode(), Cause.BODY_REWRITTEN),
    "keys sorted": (in_another_order(), Cause.BODY_REWRITTEN),
    "written by Go": (as_go_writes(), Cause.BODY_REWRITTEN),
    "slashes escaped as in PHP": (TEXT.replace("&", "\\u0026").encode(), Cause.BODY_REWRITTEN),
    "pasted with a line end": (GOOD.body + b"\n", Cause.BODY_TRAILING_NEWLINE),
    "pasted with CRLF at its end": (GOOD.body + b"\r\n", Cause.BODY_TRAILING_NEWLINE),
    "spaces around": (b"  " + GOOD.body + b" ", Cause.BODY_WHITESPACE),
    "with a BOM": (b"\xef\xbb\xbf" + GOOD.body, Cause.BODY_BOM),
    "in Latin-1": (TEXT.encode("latin-1"), Cause.BODY_CHARSET),
    "read as cp1252": (GOOD.body.decode("cp1252").encode(), Cause.BODY_CHARSET),
    "in UTF-16": (TEXT.encode("utf-16"), Cause.BODY_CHARSET),
    "with replacement characters": (TEXT.replace("ö", "\ufffd").encode(), Cause.BODY_CHARSET),
    "in bytes that are no text": (GOOD.body.replace(b"G", b"\xff\x81\x00"), Cause.BODY_CHARSET),
    "as a JSON string": (json.dumps(TEXT).encode(), Cause.BODY_QUOTED),
    "as Python shows bytes": (repr(GOOD.body).encode(), Cause.BODY_QUOTED),
    "base64 of a gateway": (b64encode(GOOD.body), Cause.BODY_BASE64),
    "compressed": (gzip.compress(GOOD.body), Cause.BODY_COMPRESSED),
    "cut off": (GOOD.body[:100], Cause.BODY_TRUNCATED),
    "cut off in a string": (GOOD.body[:-4], Cause.BODY_TRUNCATED),
    "empty": (b"", Cause.BODY_EMPTY),
    "of another event": (
        event_body("0198c0de-0000-7f00-8a1b-000000000000"),
        Cause.BODY_OF_ANOTHER_EVENT,
    ),
    "already parsed": (json.loads(TEXT), Cause.BODY_REWRITTEN),
    "not JSON at all": (b"a=1&b=2", Cause.BODY_CHANGED),
    "with another field": (
        TEXT.replace('"stage"', '"Stage"').encode()[:-1] + b',"x":1}',
        Cause.BODY_CHANGED,
    ),
    "of a list, pretty printed": (b'[{"id": 1}, 2]', Cause.BODY_CHANGED),
    "deeply nested": (b"[" * 50_000, Cause.BODY_CHANGED),
}


@pytest.mark.parametrize(("body", "cause"), BODIES.values(), ids=BODIES)
def test_what_was_done_to_the_body_is_named(body: Any, cause: Cause) -> None:
    assert look_at(body).cause is cause


def test_changed_line_ends_inside_the_body_are_named() -> None:
    pretty = Delivery(body=json.dumps(json.loads(TEXT), indent=1).encode())
    changed = pretty.body.replace(b"\n", b"\r\n")
    assert diagnose(pretty.headers, changed, SECRET, now=NOW).cause is Cause.BODY_LINE_ENDINGS
    windows = Delivery(body=changed)
    assert diagnose(windows.headers, pretty.body, SECRET, now=NOW).cause is Cause.BODY_LINE_ENDINGS


def test_a_line_end_that_was_lost_is_named() -> None:
    ended = Delivery(body=GOOD.body + b"\n")
    found = diagnose(ended.headers, GOOD.body, SECRET, now=NOW)
    assert found.cause is Cause.BODY_TRAILING_NEWLINE


def test_a_length_that_does_not_fit_shows_that_the_body_changed() -> None:
    right = str(len(GOOD.body))
    assert look_at(secrets=OTHER_SECRET, content_length=right).cause is Cause.WRONG_SECRET
    assert look_at(secrets=OTHER_SECRET, content_length="7").cause is Cause.BODY_CHANGED


SECRETS = {
    "none": (None, Cause.SECRET_MISSING),
    "empty": ("", Cause.SECRET_MISSING),
    "an empty list": ([], Cause.SECRET_MISSING),
    "blank": ("  ", Cause.SECRET_MISSING),
    "a number": (7, Cause.SECRET_MALFORMED),
    "bytes in a list": ([SECRET.encode()], Cause.SECRET_MALFORMED),
    "with a line end": (SECRET + "\n", Cause.SECRET_PADDED),
    "in quotes": (f'"{SECRET}"', Cause.SECRET_PADDED),
    "cut off": (SECRET[:-3], Cause.SECRET_MALFORMED),
    "hint": ("whsec_…9Yv0", Cause.SECRET_IS_A_HINT),
    "API key": ("cpk_" + "0" * 75, Cause.SECRET_IS_AN_API_KEY),
    "another endpoint's": (OTHER_SECRET, Cause.WRONG_SECRET),
    "two of others": ([OTHER_SECRET, "whsec_AAAA"], Cause.WRONG_SECRET),
}


@pytest.mark.parametrize(("secrets", "cause"), SECRETS.values(), ids=SECRETS)
def test_what_is_wrong_with_the_secret_is_named(secrets: Any, cause: Cause) -> None:
    assert look_at(secrets=secrets).cause is cause


@pytest.mark.parametrize(("signer", "used"), [(SECRET, OTHER_SECRET), (OTHER_SECRET, SECRET)])
def test_a_secret_from_before_a_rotation_is_named_on_either_side(signer: str, used: str) -> None:
    delivery = Delivery(secrets=[signer])
    found = diagnose(delivery.headers, delivery.body, used, now=NOW, retired=[OTHER_SECRET, "?"])
    assert found.cause is Cause.PREVIOUS_SECRET


HEADERS = {
    "no id": ({"webhook_id": None}, Cause.HEADER_MISSING),
    "no timestamp": ({"webhook_timestamp": None}, Cause.HEADER_MISSING),
    "no signature": ({"webhook_signature": None}, Cause.HEADER_MISSING),
    "twice": ({"Webhook_Id": "x"}, Cause.HEADER_REPEATED),
    "id in upper case": ({"webhook_id": EVENT_ID.upper()}, Cause.ID_MALFORMED),
    "id in quotes": ({"webhook_id": f'"{EVENT_ID}"'}, Cause.ID_MALFORMED),
    "id with spaces": ({"webhook_id": f" {EVENT_ID}"}, Cause.ID_MALFORMED),
    "id of another event": ({"webhook_id": "another"}, Cause.ID_OF_ANOTHER_EVENT),
    "id and timestamp swapped": (
        {"webhook_id": str(NOW), "webhook_timestamp": EVENT_ID},
        Cause.ID_AND_TIMESTAMP_SWAPPED,
    ),
    "timestamp in milliseconds": ({"webhook_timestamp": f"{NOW}000"}, Cause.TIMESTAMP_MALFORMED),
    "timestamp with decimals": ({"webhook_timestamp": f"{NOW}.0"}, Cause.TIMESTAMP_MALFORMED),
    "timestamp as a date": ({"webhook_timestamp": "2026-01-02"}, Cause.TIMESTAMP_MALFORMED),
    "timestamp with a space": ({"webhook_timestamp": f"{NOW} "}, Cause.TIMESTAMP_MALFORMED),
    "timestamp in words": ({"webhook_timestamp": "now"}, Cause.TIMESTAMP_MALFORMED),
    "timestamp of the retry": (
        {"webhook_timestamp": str(NOW + 372)},
        Cause.TIMESTAMP_OF_ANOTHER_ATTEMPT,
    ),
    "signature empty": ({"webhook_signature": ""}, Cause.SIGNATURE_MALFORMED),
    "signature without v1": ({"webhook_signature": GOOD.signature[3:]}, Cause.SIGNATURE_MALFORMED),
    "signature cut off": ({"webhook_signature": GOOD.signature[:-5]}, Cause.SIGNATURE_MALFORMED),
    "signature in hex": (
        {"webhook_signature": "v1," + signed(KEY, SIGNED).hex()},
        Cause.SIGNATURE_IN_HEX,
    ),
    "signature as of GitHub": (
        {"webhook_signature": "sha256=" + signed(KEY, SIGNED).hex()},
        Cause.SIGNATURE_IN_HEX,
    ),
    "signature URL-safe": (
        {"webhook_signature": "v1," + urlsafe_b64encode(signed(KEY, SIGNED)).decode().rstrip("=")},
        Cause.SIGNATURE_IN_BASE64URL,
    ),
}


@pytest.mark.parametrize(("changed", "cause"), HEADERS.values(), ids=HEADERS)
def test_what_is_wrong_with_the_headers_is_named(changed: Any, cause: Cause) -> None:
    assert look_at(**changed).cause is cause


def test_an_id_that_cannot_be_one_beside_a_missing_timestamp_is_malformed() -> None:
    assert look_at(webhook_id="٣", webhook_timestamp=None).cause is Cause.ID_AND_TIMESTAMP_SWAPPED
    assert look_at(webhook_id="a b").cause is Cause.ID_MALFORMED


def test_a_header_under_another_name_is_pointed_at() -> None:
    found = look_at(webhook_id=None, svix_id=EVENT_ID)
    assert found.sentence == "Missing: webhook-id. There is svix-id instead."


@pytest.mark.parametrize("headers", [None, 7, [1, 2], {"webhook-id": 7}])
def test_headers_that_are_none_are_named(headers: Any) -> None:
    assert diagnose(headers, GOOD.body, SECRET, now=NOW).cause is Cause.HEADERS_UNREADABLE


@pytest.mark.parametrize(
    ("now", "cause", "sentence"),
    [
        (NOW + 720, Cause.TIMESTAMP_TOO_OLD, "its timestamp is 12 minutes in the past"),
        (NOW - 720, Cause.TIMESTAMP_IN_FUTURE, "its timestamp is 12 minutes in the future"),
        (NOW + 7_210, Cause.TIMESTAMP_TOO_OLD, "local time may have been used instead of UTC"),
        (NOW + 9_000, Cause.TIMESTAMP_TOO_OLD, "and 5 minutes are allowed"),
        (NOW + 90 * 86_400, Cause.TIMESTAMP_TOO_OLD, "90 days"),
    ],
)
def test_a_clock_that_is_off_is_named_with_its_distance(
    now: float, cause: Cause, sentence: str
) -> None:
    found = look_at(now=now)
    assert (found.cause, found.is_valid, sentence in found.sentence) == (cause, False, True)


def test_a_tolerance_that_is_none_is_named() -> None:
    found = diagnose(GOOD.headers, GOOD.body, SECRET, now=NOW, tolerance=float("nan"))
    assert found.cause is Cause.TOLERANCE_UNUSABLE


def test_two_faults_at_once_name_the_body_first() -> None:
    assert look_at(GOOD.body + b"\n", now=NOW + 9_999).cause is Cause.BODY_TRAILING_NEWLINE
    rewritten = json.dumps(json.loads(TEXT)).encode()
    found = diagnose(GOOD.headers, rewritten, OTHER_SECRET, now=NOW, retired=[SECRET])
    assert found.cause is Cause.BODY_REWRITTEN


def test_at_least_fifteen_broken_cases_are_told_apart() -> None:
    cases = [*BODIES.values(), *SECRETS.values(), *HEADERS.values()]
    assert len({cause for _, cause in cases}) > 25


def test_every_cause_has_words_that_a_person_can_act_on() -> None:
    assert set(WORDS) == set(Cause)
    assert all(words.sentence.endswith((".", "near}", "zone}")) for words in WORDS.values())
    assert all(words.remedy.endswith((".", "`.")) for words in WORDS.values())
