"""Whatever comes in, `verify` returns or raises `VerificationFailed`; every changed bit is seen."""

from base64 import b64encode
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cuepost_receiver import VerificationFailed, Verified, verify
from packages.receiver.tests.signing import EVENT_ID, NOW, OTHER_SECRET, SECRET, Delivery

anything: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
names = st.sampled_from(["webhook-id", "Webhook-Timestamp", "webhook-signature", "host"])
values = (
    st.text()
    | st.sampled_from([EVENT_ID, str(NOW), Delivery().signature])
    | st.builds("v1,{}".format, st.text())
)
headers = st.lists(st.tuples(names, values | anything), max_size=5) | anything
secret_texts = st.binary(min_size=1, max_size=64).map(
    lambda key: "whsec_" + b64encode(key).decode()
)


def is_accepted(delivery: Delivery, changed: dict[str, str], body: bytes | None = None) -> bool:
    try:
        verify(delivery.body if body is None else body, delivery.headers | changed, SECRET, now=NOW)
    except VerificationFailed:
        return False
    return True


def with_bit_flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


@given(anything, headers, anything, anything, anything)
@example(b"", [("webhook-id", "\ud800")], SECRET, NOW, 300)
def test_nothing_but_one_exception_is_ever_raised(
    body: Any, given_headers: Any, secrets: Any, now: Any, tolerance: Any
) -> None:
    try:
        found = verify(body, given_headers, secrets, now=now, tolerance=tolerance)
    except VerificationFailed:
        return
    assert isinstance(found, Verified)


@given(st.binary(), headers)
def test_no_one_gets_in_without_the_secret(body: bytes, given_headers: Any) -> None:
    signed = Delivery(secrets=[OTHER_SECRET])
    for tried in (given_headers, signed.headers):
        with pytest.raises(VerificationFailed):
            verify(body, tried, SECRET, now=NOW)


@given(st.binary())
def test_reading_the_event_raises_the_same_exception_alone(body: bytes) -> None:
    delivery = Delivery(body=body)
    verified = verify(body, delivery.headers, SECRET, now=NOW)
    with pytest.raises(VerificationFailed):
        verified.event()


@given(
    st.binary(max_size=2_000),
    st.text(
        st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="."),
        min_size=1,
        max_size=256,
    ),
    st.integers(0, 10**14),
)
def test_any_body_id_and_time_that_was_signed_is_accepted(
    body: bytes, event_id: str, timestamp: int
) -> None:
    delivery = Delivery(body, event_id, timestamp)
    assert verify(body, delivery.headers, SECRET, now=timestamp) == Verified(
        event_id, timestamp, body
    )


def test_every_changed_bit_of_the_body_is_seen() -> None:
    delivery = Delivery()
    assert is_accepted(delivery, {})
    for bit in range(len(delivery.body) * 8):
        assert not is_accepted(delivery, {}, with_bit_flipped(delivery.body, bit)), bit


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_every_changed_bit_of_a_header_is_seen(name: str) -> None:
    delivery = Delivery()
    value = delivery.headers[name].encode()
    for bit in range(len(value) * 8):
        changed = with_bit_flipped(value, bit).decode("latin-1")
        assert not is_accepted(delivery, {name: changed}), bit


@given(st.binary(min_size=1), st.data())
def test_a_changed_bit_of_any_body_is_seen(body: bytes, data: st.DataObject) -> None:
    bit = data.draw(st.integers(0, len(body) * 8 - 1))
    assert not is_accepted(Delivery(body), {}, with_bit_flipped(body, bit))


@given(st.integers(-1_000, 1_000))
def test_the_tolerance_ends_at_300_seconds_either_way(offset: int) -> None:
    delivery = Delivery(timestamp=NOW - offset)
    assert is_accepted(delivery, {}) is (abs(offset) <= 300)


@given(
    st.lists(secret_texts, min_size=1, max_size=4, unique=True),
    st.lists(secret_texts, max_size=3, unique=True),
    st.data(),
)
def test_one_trusted_signature_among_several_is_enough_in_any_order(
    signing: list[str], strangers: list[str], data: st.DataObject
) -> None:
    shared = data.draw(st.sampled_from(signing))
    trusted = data.draw(st.permutations([*strangers, shared]))
    delivery = Delivery(secrets=data.draw(st.permutations(signing)))
    assert verify(delivery.body, delivery.headers, trusted, now=NOW).id == EVENT_ID


@given(
    st.lists(secret_texts, min_size=1, max_size=3), st.lists(secret_texts, min_size=1, max_size=3)
)
def test_signatures_of_others_alone_are_refused(signing: list[str], trusted: list[str]) -> None:
    # HMAC pads a key with zeros, so that two keys may be the same key.
    bare = [{each.rstrip("A=") for each in some} for some in (signing, trusted)]
    if bare[0] & bare[1]:
        return
    delivery = Delivery(secrets=signing)
    with pytest.raises(VerificationFailed):
        verify(delivery.body, delivery.headers, trusted, now=NOW)
