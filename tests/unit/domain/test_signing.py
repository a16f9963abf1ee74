"""Signatures of the Standard Webhooks convention, against its published vectors and by property."""

import base64
import hashlib
import hmac
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuepost.domain.signing import KEY_BYTES, SigningSecret, signature, signature_header
from cuepost.testing import START, SequentialIds

VECTORS = json.loads(
    Path(__file__).parents[2].joinpath("fixtures", "signature_vectors.json").read_text()
)["v1"]
SECRET = SigningSecret(bytes(range(KEY_BYTES)))
EVENT_ID = SequentialIds()(START)

keys = st.binary(min_size=1, max_size=64).map(SigningSecret)
ids = st.uuids() | st.text(st.characters(codec="ascii", exclude_characters="."), min_size=1)
timestamps = st.integers(min_value=0, max_value=1 << 40)


def accepted(header: str, secret: str, event_id: str, timestamp: str, body: bytes) -> bool:
    """The receiver's side, written from section 5.1 and from nothing else."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    message = b".".join([event_id.encode(), timestamp.encode(), body])
    expected = base64.b64encode(hmac.new(key, message, hashlib.sha256).digest()).decode()
    entries = [entry.split(",", 1) for entry in header.split(" ")]
    return any(
        version == "v1" and hmac.compare_digest(value, expected) for version, value in entries
    )


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["source"])
def test_signatures_are_those_of_the_published_vectors(vector: dict[str, str | int]) -> None:
    made = signature(
        SigningSecret.parse(str(vector["secret"])),
        str(vector["id"]),
        int(vector["timestamp"]),
        str(vector["payload"]).encode(),
    )
    assert made == vector["signature"]


@given(keys, ids, timestamps, st.binary())
def test_a_receiver_accepts_the_signature_of_any_body(
    secret: SigningSecret, event_id: object, timestamp: int, body: bytes
) -> None:
    header = signature(secret, str(event_id), timestamp, body)
    assert accepted(header, secret.reveal(), str(event_id), str(timestamp), body)


@pytest.mark.parametrize("length", [1, 31, 32, 63, 64, 65, 200])
def test_a_key_of_any_length_signs_as_hmac_says(length: int) -> None:
    """A block of SHA-256 has 64 bytes; what is longer is hashed first."""
    secret = SigningSecret(bytes(range(length)))
    assert accepted(signature(secret, "id", 7, b"body"), secret.reveal(), "id", "7", b"body")


@given(st.binary(min_size=1), st.data())
def test_any_changed_bit_of_the_body_changes_the_signature(
    body: bytes, data: st.DataObject
) -> None:
    bit = data.draw(st.integers(min_value=0, max_value=len(body) * 8 - 1))
    changed = bytearray(body)
    changed[bit // 8] ^= 1 << bit % 8
    assert signature(SECRET, EVENT_ID, 1, bytes(changed)) != signature(SECRET, EVENT_ID, 1, body)


def test_id_and_timestamp_are_part_of_what_is_signed() -> None:
    other_id = SequentialIds()(START.replace(year=2027))
    made = {
        signature(SECRET, EVENT_ID, 1, b"{}"),
        signature(SECRET, EVENT_ID, 2, b"{}"),
        signature(SECRET, other_id, 1, b"{}"),
    }
    assert len(made) == 3


def test_an_id_is_signed_as_it_is_written() -> None:
    assert signature(SECRET, EVENT_ID, 7, b"x") == signature(SECRET, str(EVENT_ID), 7, b"x")


@given(st.lists(keys, min_size=1, max_size=3), st.binary())
def test_the_header_holds_one_signature_for_each_secret_the_newest_first(
    secrets: list[SigningSecret], body: bytes
) -> None:
    header = signature_header(secrets, EVENT_ID, 5, body)
    assert header.split(" ") == [signature(each, EVENT_ID, 5, body) for each in secrets]
    for each in secrets:
        assert accepted(header, each.reveal(), str(EVENT_ID), "5", body)


def test_every_signature_carries_the_version_marker() -> None:
    assert signature(SECRET, EVENT_ID, 1, b"").startswith("v1,")


@given(keys)
def test_a_revealed_secret_can_be_read_back(secret: SigningSecret) -> None:
    assert SigningSecret.parse(secret.reveal()) == secret


def test_a_secret_is_the_prefix_and_base64_of_its_key() -> None:
    assert SECRET.reveal() == "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="


@pytest.mark.parametrize(
    "text",
    ["whsec_not base64", "whsec_abc", "whsec_AAE!", "whsec_AAAA!", "whsec_AA AA", "whsec_ÄÖ=="],
)
def test_text_that_is_no_secret_is_refused_without_being_repeated(text: str) -> None:
    with pytest.raises(ValueError, match=r"^a signing secret is 'whsec_' followed by base64 text$"):
        SigningSecret.parse(text)


def test_a_hint_ends_in_characters_that_differ_between_secrets() -> None:
    assert SECRET.hint == "whsec_…dHh8"
    assert SigningSecret(bytes(32)).hint == "whsec_…AAAA"


@given(keys)
def test_a_secret_never_shows_more_than_its_last_four_characters(secret: SigningSecret) -> None:
    shown = secret.reveal().removeprefix("whsec_").rstrip("=")[-4:]
    assert secret.hint == f"whsec_…{shown}"
    assert repr(secret) == str(secret) == f"{[secret]}"[1:-1] == f"SigningSecret(whsec_…{shown})"
