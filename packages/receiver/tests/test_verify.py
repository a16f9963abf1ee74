"""`verify` accepts what the service signed, and refuses every other thing with one exception."""

import hmac
import pickle
import time
from collections.abc import Iterator
from email.message import Message
from typing import Any

import pytest

from cuepost_receiver import Reason, VerificationFailed, Verified, verify
from cuepost_receiver.refusal import SENTENCES
from packages.receiver.tests.signing import (
    EVENT_ID,
    NOW,
    OTHER_SECRET,
    SECRET,
    Delivery,
    signature,
)

GOOD = Delivery()


def refusal(
    body: Any = GOOD.body,
    headers: Any = None,
    secrets: Any = SECRET,
    *,
    now: Any = NOW,
    tolerance: Any = 300,
    **changed: str | None,
) -> Reason:
    """Why it is refused; `webhook_id=…` and so on change a header, None takes it away."""
    if headers is None:
        renamed = {name.replace("_", "-"): value for name, value in changed.items()}
        merged = {**GOOD.headers, **renamed}
        headers = {name: value for name, value in merged.items() if value is not None}
    with pytest.raises(VerificationFailed) as caught:
        verify(body, headers, secrets, now=now, tolerance=tolerance)
    assert str(caught.value) == SENTENCES[caught.value.reason]
    return caught.value.reason


def message_headers() -> Message:
    message = Message()
    for name, value in GOOD.headers.items():
        message[name.title()] = value
    return message


def raw_pairs() -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in GOOD.headers.items()]


def one_shot() -> Iterator[tuple[str, str]]:
    yield from GOOD.headers.items()


def test_what_the_service_signed_is_accepted() -> None:
    assert verify(GOOD.body, GOOD.headers, SECRET, now=NOW) == Verified(EVENT_ID, NOW, GOOD.body)


@pytest.mark.parametrize(
    "headers",
    [
        {name.upper(): value for name, value in GOOD.headers.items()},
        raw_pairs(),
        dict(raw_pairs()),
        message_headers(),
        one_shot(),
    ],
    ids=["upper case", "ASGI pairs", "bytes", "email.message", "iterator"],
)
def test_headers_may_come_in_the_form_of_any_framework(headers: Any) -> None:
    assert verify(GOOD.body, headers, SECRET, now=NOW).id == EVENT_ID


@pytest.mark.parametrize("secrets", [SECRET, [SECRET], (OTHER_SECRET, SECRET), {SECRET}])
def test_one_secret_or_several_are_trusted(secrets: Any) -> None:
    assert verify(GOOD.body, GOOD.headers, secrets, now=NOW).id == EVENT_ID


def test_a_secret_may_come_without_its_prefix() -> None:
    bare = SECRET.removeprefix("whsec_")
    assert verify(GOOD.body, GOOD.headers, bare, now=NOW).id == EVENT_ID


def test_the_clock_of_the_machine_is_the_default() -> None:
    fresh = Delivery(timestamp=int(time.time()))
    assert verify(fresh.body, fresh.headers, SECRET).timestamp == fresh.timestamp
    with pytest.raises(VerificationFailed):
        verify(GOOD.body, GOOD.headers, SECRET)


def test_a_body_of_a_bytearray_is_kept_as_bytes() -> None:
    assert verify(bytearray(GOOD.body), GOOD.headers, SECRET, now=NOW).body == GOOD.body


def test_entries_of_other_versions_and_broken_ones_do_not_disturb() -> None:
    header = f"v1a,ed25519 v2,AAAA  v1, v1,!!!! {GOOD.signature} v1,AAAA"
    headers = GOOD.headers | {"webhook-signature": header}
    assert verify(GOOD.body, headers, SECRET, now=NOW).id == EVENT_ID


@pytest.mark.parametrize("body", [GOOD.body.decode(), None, {"id": 1}, 7, memoryview(GOOD.body)])
def test_only_raw_bytes_are_a_body(body: Any) -> None:
    assert refusal(body) is Reason.BAD_BODY


@pytest.mark.parametrize(
    "headers",
    [
        [("webhook-id", 7)],
        [(1, 2)],
        None,
        3,
        ["webhook-id"],
        {"webhook-id": ["x"]},
        {"webhook-id": None},
    ],
)
def test_what_is_no_header_is_refused(headers: Any) -> None:
    assert refusal(headers=headers if headers is not None else 0) is Reason.BAD_HEADERS


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("webhook_id", Reason.MISSING_ID),
        ("webhook_timestamp", Reason.MISSING_TIMESTAMP),
        ("webhook_signature", Reason.MISSING_SIGNATURE),
    ],
)
def test_each_header_is_needed(name: str, reason: Reason) -> None:
    assert refusal(**{name: None}) is reason


def test_a_header_that_is_there_twice_is_refused() -> None:
    for name in ("webhook-id", "Webhook-Timestamp", "WEBHOOK-SIGNATURE"):
        pairs = [*GOOD.headers.items(), (name, GOOD.headers[name.lower()])]
        assert refusal(headers=pairs) is Reason.REPEATED_HEADER


@pytest.mark.parametrize("event_id", ["", "a.b", "a b", "ä", "a\n", "x" * 257, "\x7f"])
def test_an_id_is_short_printable_and_has_no_full_stop(event_id: str) -> None:
    signed = Delivery(event_id=event_id)
    assert refusal(headers=signed.headers) is Reason.BAD_ID


@pytest.mark.parametrize(
    "text",
    ["", "1767323045.0", "123.9", "+1", "-1", " 1", "1 ", "01", "1e9", "١٢٣", "9" * 16, "0x1"],
)
def test_a_timestamp_is_a_whole_number_and_nothing_else(text: str) -> None:
    signed = {"webhook_signature": signature(SECRET, EVENT_ID, text, GOOD.body)}
    assert refusal(webhook_timestamp=text, **signed) is Reason.BAD_TIMESTAMP


def test_a_signature_is_canonical_base64_of_32_bytes() -> None:
    value = GOOD.signature.removeprefix("v1,")
    altered = value[:-2] + chr(ord(value[-2]) + 1) + "="
    for text in [
        "",
        value,
        "v1",
        "v1,",
        f"v1,{altered}",
        f"v1,{value[:-1]}",
        f"v1,{value}=",
        f"v1,{value[:20]}\n{value[20:]}",
        f"V1,{value}",
        f"v2,{value}",
        "v1,AAAA",
    ]:
        assert refusal(webhook_signature=text) is Reason.BAD_SIGNATURE, text


@pytest.mark.parametrize(
    ("secrets", "reason"),
    [
        ([], Reason.NO_SECRETS),
        ((), Reason.NO_SECRETS),
        ("", Reason.BAD_SECRET),
        ("whsec_", Reason.BAD_SECRET),
        ("whsec_not base64", Reason.BAD_SECRET),
        (SECRET + "\n", Reason.BAD_SECRET),
        (SECRET[:-1], Reason.BAD_SECRET),
        ("whsec_ÄÖ==", Reason.BAD_SECRET),
        ([SECRET, ""], Reason.BAD_SECRET),
        (None, Reason.BAD_SECRET),
        (5, Reason.BAD_SECRET),
        ([b"bytes"], Reason.BAD_SECRET),
        ([None], Reason.BAD_SECRET),
    ],
)
def test_secrets_that_cannot_be_used_let_nothing_pass(secrets: Any, reason: Reason) -> None:
    assert refusal(secrets=secrets) is reason


def test_another_secret_another_body_and_other_headers_do_not_match() -> None:
    assert refusal(secrets=OTHER_SECRET) is Reason.NO_MATCH
    assert refusal(GOOD.body + b"\n") is Reason.NO_MATCH
    assert refusal(webhook_id="another") is Reason.NO_MATCH
    assert refusal(webhook_timestamp=str(NOW + 1)) is Reason.NO_MATCH


def test_signatures_are_compared_in_constant_time_and_all_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared: list[bool] = []
    compare = hmac.compare_digest

    def counted(one: bytes, other: bytes) -> bool:
        compared.append(compare(one, other))
        return compared[-1]

    monkeypatch.setattr(hmac, "compare_digest", counted)
    both = Delivery(secrets=[SECRET, OTHER_SECRET])
    verify(both.body, both.headers, [SECRET, OTHER_SECRET], now=NOW)
    assert compared == [True, False, False, True]


@pytest.mark.parametrize("offset", [-300, -299.5, 0, 299, 300])
def test_five_minutes_are_tolerated_either_way(offset: float) -> None:
    assert verify(GOOD.body, GOOD.headers, SECRET, now=NOW + offset).timestamp == NOW


@pytest.mark.parametrize(
    ("offset", "reason"),
    [
        (300.001, Reason.TOO_OLD),
        (301, Reason.TOO_OLD),
        (10**9, Reason.TOO_OLD),
        (-300.001, Reason.TOO_NEW),
        (-301, Reason.TOO_NEW),
        (-NOW, Reason.TOO_NEW),
    ],
)
def test_more_than_five_minutes_are_not(offset: float, reason: Reason) -> None:
    assert refusal(now=NOW + offset) is reason


def test_the_tolerance_can_be_chosen() -> None:
    assert verify(GOOD.body, GOOD.headers, SECRET, now=NOW + 10, tolerance=10).id == EVENT_ID
    assert refusal(now=NOW + 11, tolerance=10) is Reason.TOO_OLD
    assert verify(GOOD.body, GOOD.headers, SECRET, now=NOW, tolerance=0).id == EVENT_ID


@pytest.mark.parametrize(
    ("now", "tolerance"),
    [
        (float("nan"), 300),
        (float("inf"), 300),
        ("soon", 300),
        (10**400, 300),
        (NOW, float("nan")),
        (NOW, float("inf")),
        (NOW, -1),
        (NOW, None),
        (NOW, "x"),
    ],
)
def test_a_time_or_tolerance_that_is_no_number_lets_nothing_pass(now: Any, tolerance: Any) -> None:
    assert refusal(now=now, tolerance=tolerance) is Reason.BAD_TOLERANCE


def test_a_failed_verification_survives_pickling() -> None:
    copied = pickle.loads(pickle.dumps(VerificationFailed(Reason.NO_MATCH)))
    assert (copied.reason, str(copied)) == (Reason.NO_MATCH, SENTENCES[Reason.NO_MATCH])


def test_every_reason_has_a_sentence() -> None:
    assert set(SENTENCES) == set(Reason)


def test_the_body_is_not_in_the_repr() -> None:
    assert repr(Verified("a", 1, b"caption")) == "Verified(id='a', timestamp=1)"
