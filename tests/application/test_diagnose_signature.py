"""The signature doctor over an endpoint's own secrets, which never leave it."""

import json
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from cuepost.application.diagnose_signature import SignatureQuestion, SignatureVerdict
from cuepost.application.manage_webhooks import EndpointWithSecret
from cuepost.domain.delivery import Delivery
from cuepost.domain.errors import Invalid, MissingScope, NotFound, WebhooksNotEnabled
from cuepost.domain.event import Event
from cuepost.domain.instants import to_millis
from cuepost.domain.signing import SigningSecret, signature_header
from tests.application.harness import Harness
from tests.interfaces.rest.client import attempt_of

NOWHERE = UUID("0198c0de-0000-7000-8000-000000000000")


async def asked(harness: Harness, webhook_id: UUID, **about: Any) -> SignatureVerdict:
    question = SignatureQuestion(webhook_id, **about)
    return await harness.see(harness.service.signatures.diagnose, harness.owner, question)


async def sent(harness: Harness, *secrets: SigningSecret) -> tuple[Delivery, Event, dict[str, str]]:
    """A delivery as the engine sends it, signed with these secrets."""
    delivery = await harness.complete()
    event = await harness.see(lambda t: t.events.get(delivery.account_id, delivery.event_id))
    assert event is not None
    timestamp = to_millis(harness.clock.now()) // 1000
    headers = {
        "webhook-id": str(event.id),
        "webhook-timestamp": str(timestamp),
        "webhook-signature": signature_header(secrets, event.id, timestamp, event.body),
    }
    attempt = attempt_of(
        delivery, started_at=harness.clock.now(), request_headers=tuple(headers.items())
    )
    await harness.do(lambda transaction: transaction.attempts.add([attempt]))
    await harness.count_attempts(delivery, 1)
    return delivery, event, headers


async def begun(harness: Harness) -> tuple[EndpointWithSecret, Delivery, Event, dict[str, str]]:
    made = await harness.endpoint()
    return made, *await sent(harness, made.secret)


async def test_a_delivery_as_it_was_sent_is_valid_however_long_ago_that_is(
    harness: Harness,
) -> None:
    made, delivery, _, _ = await begun(harness)
    harness.clock.advance(days=2)
    found = await asked(harness, made.view.endpoint.id, delivery_id=delivery.id)
    assert (found.is_valid, found.cause) == (True, "valid")


async def test_a_body_that_was_written_again_is_found_out(harness: Harness) -> None:
    made, delivery, event, _ = await begun(harness)
    rewritten = json.dumps(json.loads(event.body))
    found = await asked(harness, made.view.endpoint.id, delivery_id=delivery.id, body=rewritten)
    assert (found.is_valid, found.cause) == (False, "body_rewritten")


async def test_headers_and_body_are_enough(harness: Harness) -> None:
    made, _, event, headers = await begun(harness)
    webhook_id, body = made.view.endpoint.id, event.body.decode()
    assert (await asked(harness, webhook_id, headers=headers, body=body)).is_valid
    pasted = "\n".join(f"{name}: {value}" for name, value in headers.items())
    assert (await asked(harness, webhook_id, headers=pasted, body=body)).is_valid
    harness.clock.advance(hours=1)
    late = await asked(harness, webhook_id, headers=headers, body=body)
    assert late.cause == "timestamp_too_old"
    then = event.created_at
    assert (await asked(harness, webhook_id, headers=headers, body=body, received_at=then)).is_valid


async def test_another_endpoints_secret_in_the_receiver_is_found_out(harness: Harness) -> None:
    made, delivery, _, _ = await begun(harness)
    other = await harness.endpoint(url="https://hooks.example.net/")
    found = await asked(
        harness,
        made.view.endpoint.id,
        delivery_id=delivery.id,
        secret=other.secret.reveal(),
    )
    assert found.cause == "wrong_secret"
    assert other.secret.reveal() not in f"{found.sentence}{found.remedy}"


async def test_a_secret_from_before_a_rotation_is_found_out(harness: Harness) -> None:
    made = await harness.endpoint()
    webhook_id = made.view.endpoint.id
    turned = await harness.do(harness.service.webhooks.rotate_secret, harness.owner, webhook_id)
    delivery, _, _ = await sent(harness, turned.secret)
    found = await asked(harness, webhook_id, delivery_id=delivery.id, secret=made.secret.reveal())
    assert found.cause == "previous_secret"


async def test_what_was_signed_with_either_secret_of_an_overlap_is_valid(harness: Harness) -> None:
    made = await harness.endpoint()
    webhook_id = made.view.endpoint.id
    await harness.do(harness.service.webhooks.rotate_secret, harness.owner, webhook_id)
    delivery, _, _ = await sent(harness, made.secret)
    assert (await asked(harness, webhook_id, delivery_id=delivery.id)).is_valid


async def test_code_that_did_not_decode_the_secret_is_found_out(harness: Harness) -> None:
    made, delivery, event, headers = await begun(harness)
    raw = SigningSecret(made.secret.reveal().removeprefix("whsec_").encode())
    theirs = signature_header([raw], event.id, int(headers["webhook-timestamp"]), event.body)
    found = await asked(harness, made.view.endpoint.id, delivery_id=delivery.id, computed=theirs)
    assert found.cause == "secret_not_decoded"


async def test_what_was_not_sent_yet_cannot_be_diagnosed(harness: Harness) -> None:
    made = await harness.endpoint()
    delivery = await harness.complete()
    with pytest.raises(Invalid) as refused:
        await asked(harness, made.view.endpoint.id, delivery_id=delivery.id)
    assert [error.code for error in refused.value.errors] == ["not_sent_yet"]


async def test_without_a_delivery_headers_and_body_are_needed(harness: Harness) -> None:
    made = await harness.endpoint()
    with pytest.raises(Invalid) as refused:
        await asked(harness, made.view.endpoint.id)
    assert [error.field for error in refused.value.errors] == ["headers", "body"]


async def test_only_what_is_the_callers_own_can_be_diagnosed(harness: Harness) -> None:
    made, delivery, _, _ = await begun(harness)
    other = await harness.endpoint(url="https://hooks.example.net/")
    for webhook_id, delivery_id in (
        (NOWHERE, delivery.id),
        (made.view.endpoint.id, NOWHERE),
        (other.view.endpoint.id, delivery.id),
    ):
        with pytest.raises(NotFound):
            await asked(harness, webhook_id, delivery_id=delivery_id)
    diagnose = harness.service.signatures.diagnose
    question = SignatureQuestion(made.view.endpoint.id, delivery.id)
    with pytest.raises(NotFound):
        await harness.see(diagnose, await harness.new_owner(), question)
    with pytest.raises(WebhooksNotEnabled):
        await harness.see(diagnose, await harness.new_owner(webhooks_enabled=False), question)
    with pytest.raises(MissingScope):
        await harness.see(diagnose, replace(harness.owner, scopes=frozenset()), question)


def test_a_question_hides_its_secret_in_its_repr() -> None:
    question = SignatureQuestion(NOWHERE, secret="whsec_canary", body="canary")
    assert "canary" not in repr(question)
