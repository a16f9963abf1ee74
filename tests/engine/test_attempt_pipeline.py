"""One attempt: what goes on the wire, what comes of it, and what is decided then."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import anyio
import pytest

from cuepost.adapters.secret_box import AesGcmBox
from cuepost.domain.attempt import Outcome, TlsFault
from cuepost.domain.delivery import DeliveryStatus, Trigger
from cuepost.domain.egress_policy import EgressPolicy
from cuepost.domain.endpoint import StoredSecret
from cuepost.domain.retry_schedule import RetrySchedule
from cuepost.domain.signing import SigningSecret, signature
from cuepost.engine.attempt_pipeline import AttemptPipeline
from cuepost.ports.dispatch import Assignment, NextStep, Result, Target
from cuepost.ports.transport import Request
from cuepost.testing import START, Answer, RepeatableEntropy, ScriptedTransport, VirtualClock
from tests.support.records import Records

RECORDS = Records()
URL = "https://hooks.example.com/cue"
WEBHOOK, EVENT, OTHER = UUID(int=1), UUID(int=2), UUID(int=3)
BODY = '{"id":"2","größe":1}'.encode()
PAUSES = (timedelta(seconds=60), timedelta(seconds=300))
BOX = AesGcmBox([bytes(32)], RepeatableEntropy())
OLD, NEW = SigningSecret(b"o" * 32), SigningSecret(b"n" * 32)


def stored(secret: SigningSecret, version: int, **changed: object) -> StoredSecret:
    sealed = BOX.seal(secret.key, WEBHOOK.bytes)
    return replace(StoredSecret(version, sealed, secret.hint, START), **changed)  # type: ignore[arg-type]  # named by the test


def assignment(*secrets: StoredSecret, number: int = 1) -> Assignment:
    delivery = RECORDS.delivery(
        OTHER, id=OTHER, webhook_id=WEBHOOK, event_id=EVENT, trigger=Trigger.MANUAL, budget=2
    )
    target = Target(OTHER, WEBHOOK, URL, secrets or (stored(NEW, 1),))
    return RECORDS.assignment(delivery, number=number, attempt_count=4, body=BODY, target=target)


class Lab:
    def __init__(self, policy: EgressPolicy | None = None, jitter: float = 0.0) -> None:
        self.clock = VirtualClock()
        self.transport = ScriptedTransport(self.clock)
        self.pipeline = AttemptPipeline(
            clock=self.clock,
            box=BOX,
            policy=policy or EgressPolicy(),
            transport=self.transport,
            schedule=RetrySchedule(PAUSES),
            jitter=lambda: jitter,
            timeout=timedelta(seconds=15),
            user_agent="cuepost/1.2.3",
        )

    async def run(self, made: Assignment, *answers: Answer | Outcome | int) -> Result:
        self.transport.will(URL, *answers)
        with anyio.fail_after(5):
            ended = await self.pipeline.run(made)
        assert isinstance(ended, Result)
        return ended


async def test_the_request_is_as_the_contract_says() -> None:
    lab = Lab()
    await lab.run(assignment(), 200)
    [sent] = lab.transport.sent
    timestamp = int(START.timestamp())
    assert sent.request == Request(
        url=sent.request.url,
        headers=(
            ("content-type", "application/json; charset=utf-8"),
            ("user-agent", "cuepost/1.2.3"),
            ("accept-encoding", "identity"),
            ("webhook-id", str(EVENT)),
            ("webhook-timestamp", str(timestamp)),
            ("webhook-signature", signature(NEW, EVENT, timestamp, BODY)),
        ),
        body=BODY,
        timeout_seconds=15.0,
    )
    assert sent.request.url.text == URL


async def test_the_timestamp_is_the_second_in_which_the_attempt_begins() -> None:
    lab = Lab()
    lab.clock.advance(milliseconds=321)
    await lab.run(assignment(), 200)
    lab.clock.advance(milliseconds=1)
    await lab.run(assignment(), 200)
    assert [each.header("webhook-timestamp") for each in lab.transport.sent] == [
        str(int(START.timestamp())),
        str(int(START.timestamp()) + 1),
    ]


async def test_during_an_overlap_both_secrets_sign_the_new_one_first() -> None:
    lab = Lab()
    secrets = stored(NEW, 2), stored(OLD, 1, expires_at=START + timedelta(hours=24))
    result = await lab.run(assignment(*secrets), 200)
    timestamp = int(START.timestamp())
    assert lab.transport.sent[0].header("webhook-signature") == " ".join(
        signature(each, EVENT, timestamp, BODY) for each in (NEW, OLD)
    )
    assert result.attempt.signed_with == (NEW.hint, OLD.hint)


async def test_a_secret_that_ran_out_since_the_assignment_was_loaded_does_not_sign() -> None:
    lab = Lab()
    secrets = stored(NEW, 2), stored(OLD, 1, expires_at=START + timedelta(hours=24))
    lab.clock.advance(hours=24)
    result = await lab.run(assignment(*secrets), 200)
    timestamp = int(lab.clock.now().timestamp())
    sent = lab.transport.sent[0].header("webhook-signature")
    assert sent == signature(NEW, EVENT, timestamp, BODY)
    assert result.attempt.signed_with == (NEW.hint,)


async def test_a_policy_that_became_stricter_blocks_what_is_stored() -> None:
    lab = Lab(EgressPolicy(ports=((8443, 8443),)))
    result = await lab.run(assignment())
    assert lab.transport.sent == []
    assert result.attempt.outcome is Outcome.BLOCKED_DESTINATION
    assert result.attempt.response_status is None
    assert result.next_step == NextStep(DeliveryStatus.RETRYING, START + PAUSES[0])


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (200, Outcome.DELIVERED),
        (204, Outcome.DELIVERED),
        (299, Outcome.DELIVERED),
        (301, Outcome.REDIRECT),
        (304, Outcome.REDIRECT),
        (400, Outcome.HTTP_ERROR),
        (410, Outcome.HTTP_ERROR),
        (503, Outcome.HTTP_ERROR),
        *((fault, fault) for fault in Outcome if fault not in {"delivered", "http_error"}),
    ],
)
async def test_every_answer_has_its_outcome(answer: int | Outcome, outcome: Outcome) -> None:
    result = await Lab().run(assignment(), answer)
    assert result.attempt.outcome is outcome
    delivered = outcome is Outcome.DELIVERED
    assert result.next_step.status is (
        DeliveryStatus.DELIVERED if delivered else DeliveryStatus.RETRYING
    )


@pytest.mark.parametrize(
    ("number", "jitter", "due"), [(1, 0.0, 60), (1, 0.5, 63), (2, 0.0, 300), (2, 0.5, 315)]
)
async def test_a_failure_is_due_again_after_its_pause(
    number: int, jitter: float, due: float
) -> None:
    result = await Lab(jitter=jitter).run(assignment(number=number), 500)
    expected = START + timedelta(seconds=due)
    assert result.next_step == NextStep(DeliveryStatus.RETRYING, expected)


async def test_the_third_failure_is_the_end() -> None:
    result = await Lab().run(assignment(number=3), 500)
    assert result.next_step == NextStep(DeliveryStatus.FAILED)


async def test_the_last_attempt_may_still_succeed() -> None:
    result = await Lab().run(assignment(number=3), 200)
    assert result.next_step == NextStep(DeliveryStatus.DELIVERED)


@pytest.mark.parametrize("duration", [0.0004, 0.0125, 0.01275, 1.0001])
async def test_what_is_due_is_never_cut_to_an_earlier_millisecond(duration: float) -> None:
    lab = Lab(jitter=1 / 3)
    result: list[Result] = []

    async def attempt() -> None:
        result.append(await lab.run(assignment(), Answer(status=500, seconds=duration)))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(attempt)
        with anyio.fail_after(5):
            while not lab.clock.jump():
                await anyio.lowlevel.checkpoint()
    exactly = START + timedelta(seconds=duration) + PAUSES[0] * (1 + 0.1 / 3)
    due = result[0].next_step.due_at
    assert due is not None
    assert due.microsecond % 1000 == 0
    assert timedelta(0) <= due - exactly < timedelta(milliseconds=1)
    assert result[0].attempt.duration_ms == pytest.approx(duration * 1000)


async def test_the_attempt_keeps_why_tls_failed() -> None:
    expired = TlsFault.CERTIFICATE_EXPIRED
    answer = Answer(status=None, fault=Outcome.TLS_ERROR, tls_fault=expired)
    attempt = (await Lab().run(assignment(), answer)).attempt
    assert (attempt.outcome, attempt.tls_fault) == (Outcome.TLS_ERROR, expired)


async def test_the_attempt_tells_the_whole_story() -> None:
    answer = Answer(status=503, headers=(("retry-after", "9"),), body=b"busy")
    result = await Lab().run(assignment(), answer)
    attempt = result.attempt
    assert (attempt.delivery_id, attempt.budget, attempt.number) == (OTHER, 2, 1)
    assert (attempt.trigger, attempt.started_at) == (Trigger.MANUAL, START)
    assert (attempt.response_status, attempt.response_headers) == (503, answer.headers)
    assert attempt.response_body == b"busy"
    assert dict(attempt.request_headers)["webhook-id"] == str(EVENT)
