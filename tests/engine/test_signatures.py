"""What the engine sends is accepted by libraries that others wrote, and by the known vectors."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import standardwebhooks

from cuepost.adapters.system_clock import SystemClock
from cuepost.domain.signing import SigningSecret, signature, signature_header
from cuepost.testing import Sent
from tests.support.engine_harness import ANY_LIMIT, MINUTE, EngineHarness, ScenarioRunner

VECTORS = json.loads(
    Path(__file__).parents[1].joinpath("fixtures", "signature_vectors.json").read_text()
)
Verify = Callable[[bytes, Mapping[str, str], str], None]


def with_own_signer(body: bytes, headers: Mapping[str, str], secret: str) -> None:
    timestamp = int(headers["webhook-timestamp"])
    mine = signature(SigningSecret.parse(secret), headers["webhook-id"], timestamp, body)
    if mine not in headers["webhook-signature"].split(" "):
        raise ValueError("no signature fits")


def with_standardwebhooks(body: bytes, headers: Mapping[str, str], secret: str) -> None:
    standardwebhooks.Webhook(secret).verify(body, dict(headers))


def with_openai(body: bytes, headers: Mapping[str, str], secret: str) -> None:
    import openai  # noqa: PLC0415  # takes seconds, which each test worker would wait

    with openai.OpenAI(api_key="none") as client:
        client.webhooks.verify_signature(body, dict(headers), secret=secret)


def with_polar(body: bytes, headers: Mapping[str, str], secret: str) -> None:
    import polar.webhooks  # noqa: PLC0415  # see above

    known = frozenset({"project.completed"})
    polar.webhooks.validate_event(body, dict(headers), secret, known, dict)


WAYS = [with_own_signer, with_standardwebhooks, with_openai, with_polar]


@dataclass(frozen=True, slots=True)
class Delivered:
    """Three requests: before a rotation, during the overlap, after it."""

    sent: list[Sent]
    old: SigningSecret
    new: SigningSecret


@pytest.fixture
def delivered(engine_store_file: Path, tmp_path: Path) -> Delivered:
    """As of now, because the libraries look at the clock."""
    found: list[Delivered] = []

    async def scenario(engine: EngineHarness) -> None:
        harness = engine.harness.reassembled(replace(ANY_LIMIT, rotation_overlap=MINUTE))
        made = await harness.endpoint()
        async with engine.delivering():
            await harness.complete()
            await engine.later()
            rotated = await harness.do(
                harness.service.webhooks.rotate_secret, harness.owner, made.view.endpoint.id
            )
            await harness.complete()
            await engine.later(MINUTE)
            await harness.complete()
            await engine.later()
        found.append(Delivered(engine.sent, made.secret, rotated.secret))

    ScenarioRunner(engine_store_file, tmp_path, start=SystemClock().now()).run(scenario)
    return found[0]


def accepts(verify: Verify, sent: Sent, secret: SigningSecret) -> bool:
    try:
        verify(sent.request.body, dict(sent.request.headers), secret.reveal())
    except Exception as refused:
        if "ignature" not in str(refused):
            raise
        return False
    return True


@pytest.mark.parametrize("verify", WAYS)
def test_each_secret_verifies_while_it_is_live(verify: Verify, delivered: Delivered) -> None:
    assert [
        (accepts(verify, each, delivered.old), accepts(verify, each, delivered.new))
        for each in delivered.sent
    ] == [(True, False), (True, True), (False, True)]


@pytest.mark.parametrize("verify", WAYS)
def test_one_other_byte_does_not(verify: Verify, delivered: Delivered) -> None:
    sent = delivered.sent[0]
    request = replace(sent.request, body=sent.request.body.replace(b"completed", b"complete!", 1))
    assert not accepts(verify, replace(sent, request=request), delivered.old)


@pytest.mark.parametrize("vector", VECTORS["v1"], ids=lambda vector: vector["id"])
def test_the_known_vectors_come_out(vector: dict[str, Any]) -> None:
    secret = SigningSecret.parse(vector["secret"])
    body = vector["payload"].encode()
    made = signature_header([secret], vector["id"], vector["timestamp"], body)
    assert made == vector["signature"]
