"""Hostile texts keep the doctor busy for a moment only: it works on the event loop of a service.

With time that grows with the square of their length, these would take minutes.
"""

from base64 import b64encode

import pytest

from cuepost_receiver.doctor import Cause, diagnose, read_headers
from cuepost_receiver.doctor.diagnosis import MOST_SECRETS
from packages.receiver.tests.signing import NOW, OTHER_SECRET, SECRET, Delivery

GOOD = Delivery()
LENGTH = 1_000_000


@pytest.mark.parametrize(
    "text",
    [
        "a:x" + " " * LENGTH + "y",
        "a:x" + "'" * LENGTH + "y",
        "-H" + " " * LENGTH + ":",
        "a" * LENGTH,
        "a" + " " * LENGTH + "b",
    ],
    ids=["spaces", "quotes", "option", "name", "no value"],
)
def test_a_long_line_is_read(text: str) -> None:
    assert len(read_headers(text)) <= 1


@pytest.mark.parametrize("marks", ["'", "v1,", "sha256=", "=", "A"])
def test_a_long_signature_is_read(marks: str) -> None:
    headers = GOOD.headers | {"webhook-signature": f"v1,x{marks * LENGTH}y"}
    assert diagnose(headers, GOOD.body, SECRET, now=NOW).cause is Cause.SIGNATURE_MALFORMED


def test_thousands_of_signatures_are_compared() -> None:
    many = " ".join(f"v1,{b64encode(number.to_bytes(32)).decode()}" for number in range(20_000))
    headers = GOOD.headers | {"webhook-signature": many}
    assert not diagnose(headers, GOOD.body, SECRET, now=NOW).is_valid


def test_a_signature_behind_many_others_is_valid() -> None:
    others = " ".join(f"v1,{b64encode(number.to_bytes(32)).decode()}" for number in range(100))
    headers = GOOD.headers | {"webhook-signature": f"{others} {GOOD.signature}"}
    assert diagnose(headers, GOOD.body, [OTHER_SECRET, SECRET], now=NOW).is_valid


def test_only_some_of_thousands_of_secrets_are_examined() -> None:
    body = GOOD.body + b" " * 200_000
    secrets = [f"whsec_{b64encode(number.to_bytes(24)).decode()}" for number in range(20_000)]
    assert not diagnose(GOOD.headers, body, secrets, now=NOW).is_valid
    few = [*secrets[: MOST_SECRETS - 1], SECRET]
    assert diagnose(GOOD.headers, GOOD.body, few, now=NOW).is_valid


def test_a_long_run_of_combining_characters_is_not_sorted() -> None:
    body = ('"' + "\u0315\u0300\u0327" * 40_000 + '"').encode()
    assert not diagnose(GOOD.headers, body, SECRET, now=NOW).is_valid
