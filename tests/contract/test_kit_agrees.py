"""Service and kit share no code; here is what keeps them in agreement."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuepost.domain.access import TOKEN_PREFIX
from cuepost.domain.event import event_body
from cuepost.domain.event_catalog import CATALOG, TEST_EVENT, EventType
from cuepost.domain.signing import SigningSecret, signature_header
from cuepost.testing import START, SequentialIds
from cuepost_receiver import Reason, VerificationFailed, verify
from cuepost_receiver.doctor import Cause, diagnose
from cuepost_receiver.doctor.body_variants import as_the_service_writes
from cuepost_receiver.doctor.questions import secret_fault
from cuepost_receiver.event import TEST_TYPE
from cuepost_receiver.signing_key import key_of
from tests.engine.test_signatures import Delivered

VECTORS: list[dict[str, Any]] = json.loads(
    Path(__file__).parents[1].joinpath("fixtures", "signature_vectors.json").read_text()
)["v1"]
EVENT_ID = SequentialIds()(START)
NOW = 1_767_323_045

keys = st.binary(min_size=1, max_size=64).map(SigningSecret)


def headers_of(signature: str, event_id: object = EVENT_ID, timestamp: int = NOW) -> dict[str, str]:
    return {
        "webhook-id": str(event_id),
        "webhook-timestamp": str(timestamp),
        "webhook-signature": signature,
    }


def frozen(entry: EventType) -> bytes:
    return event_body(EVENT_ID, entry.name, START, entry.sample()["data"])


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["source"])
def test_the_published_vectors_verify_with_the_kit(vector: dict[str, Any]) -> None:
    headers = headers_of(vector["signature"], vector["id"], vector["timestamp"])
    body = vector["payload"].encode()
    found = verify(body, headers, vector["secret"], now=vector["timestamp"])
    assert (found.id, found.timestamp, found.body) == (vector["id"], vector["timestamp"], body)
    assert diagnose(headers, body, vector["secret"], now=vector["timestamp"]).is_valid


@given(st.lists(keys, min_size=1, max_size=3), st.binary(), st.integers(0, 10**12), st.data())
def test_whatever_the_service_signs_the_kit_accepts(
    secrets: list[SigningSecret], body: bytes, timestamp: int, data: st.DataObject
) -> None:
    header = signature_header(secrets, EVENT_ID, timestamp, body)
    trusted = data.draw(st.sampled_from(secrets))
    headers = headers_of(header, timestamp=timestamp)
    assert verify(body, headers, trusted.reveal(), now=timestamp).body == body


@given(keys)
def test_both_read_a_secret_alike(secret: SigningSecret) -> None:
    assert key_of(secret.reveal()) == SigningSecret.parse(secret.reveal()).key == secret.key


def test_real_deliveries_verify_before_during_and_after_a_rotation(delivered: Delivered) -> None:
    trusted = [delivered.old.reveal(), delivered.new.reveal()]
    refusals = [
        [_refusal(sent.request.body, sent.request.headers, secret) for secret in trusted]
        for sent in delivered.sent
    ]
    refused = Reason.NO_MATCH
    assert refusals == [[None, refused], [None, None], [refused, None]]
    for sent in delivered.sent:
        event = verify(sent.request.body, sent.request.headers, trusted).event()
        assert (event.type, event.status, event.stage) == (
            "project.completed",
            "completed",
            "export",
        )
        assert event.result_url is not None


def _refusal(body: bytes, headers: Any, secret: str) -> Reason | None:
    try:
        verify(body, headers, secret)
    except VerificationFailed as failure:
        return failure.reason
    return None


@pytest.mark.parametrize("entry", CATALOG, ids=lambda entry: entry.name)
def test_the_kit_reads_every_event_of_the_catalogue(entry: EventType) -> None:
    body = frozen(entry)
    secret = SigningSecret(bytes(32))
    headers = headers_of(signature_header([secret], EVENT_ID, NOW, body))
    event = verify(body, headers, secret.reveal(), now=NOW).event()
    data = entry.sample()["data"]
    assert (event.id, event.type, event.created_at, event.data) == (
        str(EVENT_ID),
        entry.name,
        START,
        data,
    )
    assert (event.project_id, event.result_url) == (data.get("projectId"), data.get("resultUrl"))
    assert event.is_test is (entry.name == TEST_EVENT == TEST_TYPE)


@pytest.mark.parametrize("entry", CATALOG, ids=lambda entry: entry.name)
def test_the_doctor_knows_how_the_service_writes_every_event(entry: EventType) -> None:
    body = frozen(entry)
    assert as_the_service_writes(body) == body
    secret = SigningSecret(bytes(32))
    headers = headers_of(signature_header([secret], EVENT_ID, NOW, body))
    rewritten = json.dumps(json.loads(body), sort_keys=True, indent=2)
    found = diagnose(headers, rewritten, secret.reveal(), now=NOW)
    assert found.cause is Cause.BODY_REWRITTEN


def test_the_doctor_knows_what_the_service_shows_in_place_of_a_secret() -> None:
    assert secret_fault(SigningSecret(bytes(32)).hint) is Cause.SECRET_IS_A_HINT
    assert secret_fault(TOKEN_PREFIX + "0" * 75) is Cause.SECRET_IS_AN_API_KEY
