"""Attempts come at the promised instants, with the same bytes, each signed again."""

import pytest

from cuepost.application.manage_webhooks import EndpointChange
from cuepost.domain.attempt import Outcome
from cuepost.domain.delivery import Delivery, DeliveryStatus, Trigger
from cuepost.domain.signing import SigningSecret, signature
from cuepost.testing import HANGS, Answer
from tests.support.engine_harness import DAY, HOUR, EngineHarness, RunScenarios

URL = "https://hooks.example.com/cue"
NEW_URL = "https://elsewhere.example.com/cue"


async def three_failures(engine: EngineHarness, *answers: int | Outcome | Answer) -> Delivery:
    await engine.harness.endpoint()
    engine.transport.will(URL, *answers)
    async with engine.delivering():
        await engine.harness.complete()
        await engine.later(HOUR)
        [ended] = await engine.harness.deliveries()
    return ended


def pauses(engine: EngineHarness) -> list[float]:
    """Seconds from the end of each attempt to the start of the next."""
    ends = [each.ended_at for each in engine.sent if each.ended_at is not None]
    assert len(ends) == len(engine.sent)
    return [
        (after.at - end).total_seconds() for end, after in zip(ends, engine.sent[1:], strict=False)
    ]


@pytest.mark.parametrize("took", [0.0, 1.5, 14.999])
def test_the_second_comes_60_s_after_the_end_of_the_first_the_third_300_s_after_the_second(
    run_scenarios: RunScenarios, took: float
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        ended = await three_failures(engine, *[Answer(status=503, seconds=took)] * 3)
        assert pauses(engine) == [60.0, 300.0]
        assert (ended.status, ended.attempt_count) == (DeliveryStatus.FAILED, 3)
        attempts = await engine.attempts(ended.id)
        assert [(each.budget, each.number) for each in attempts] == [(1, 1), (1, 2), (1, 3)]
        assert [each.started_at for each in attempts] == [each.at for each in engine.sent]

    run_scenarios(scenario)


def test_after_the_third_failure_nothing_is_ever_sent_again_by_itself(
    run_scenarios: RunScenarios,
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        harness = engine.harness
        ended = await three_failures(engine, 500, Outcome.CONNECT_ERROR, HANGS)
        assert (ended.status, ended.attempt_count) == (DeliveryStatus.FAILED, 3)
        assert (ended.next_attempt_at, await harness.queued()) == (None, set())
        # Neither time nor a restart, nor that the receiver is well again and gets other events.
        for wait in (HOUR, DAY, 28 * DAY):
            # It looks for work every day: every ten minutes of a month would take too long.
            restarted = engine.dispatcher(longest_sleep=DAY, lease=30 * DAY)
            async with engine.delivering(restarted):
                other = await harness.complete()
                await engine.later(wait)
            assert engine.sent[-1].header("webhook-id") == str(other.event_id)
        of_ended = [
            each for each in engine.sent if each.header("webhook-id") == str(ended.event_id)
        ]
        assert (len(of_ended), len(engine.sent)) == (3, 6)
        assert [each for each in await harness.deliveries() if each.id == ended.id] == [ended]

    run_scenarios(scenario)


def test_with_the_largest_jitter_they_come_less_than_a_tenth_later(
    run_scenarios: RunScenarios,
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        engine.jitter = lambda: 0.999
        await three_failures(engine, *[Answer(status=503, seconds=0.7)] * 3)
        assert pauses(engine) == [65.994, 329.97]

    run_scenarios(scenario)


def test_a_receiver_that_hangs_is_given_15_s(run_scenarios: RunScenarios) -> None:
    async def scenario(engine: EngineHarness) -> None:
        ended = await three_failures(engine, HANGS, HANGS, HANGS)
        assert engine.offsets() == [0.0, 75.0, 390.0]
        outcomes = {each.outcome for each in await engine.attempts(ended.id)}
        assert outcomes == {Outcome.TIMEOUT}

    run_scenarios(scenario)


@pytest.mark.parametrize(("took", "requests"), [(15.0, 1), (15.001, 2)])
def test_an_acknowledgement_counts_until_15_s_and_not_after(
    run_scenarios: RunScenarios, took: float, requests: int
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        await three_failures(engine, Answer(status=204, seconds=took), 204)
        assert len(engine.sent) == requests

    run_scenarios(scenario)


def test_every_attempt_has_the_same_bytes_and_a_signature_of_its_own_second(
    run_scenarios: RunScenarios,
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        made = await engine.harness.endpoint()
        engine.transport.will(URL, 500, Outcome.CONNECT_ERROR)
        async with engine.delivering():
            await engine.harness.complete()
            await engine.later(HOUR)
        [event] = await engine.harness.events()
        assert {each.request.body for each in engine.sent} == {event.body}
        assert [each.header("webhook-signature") for each in engine.sent] == [
            signature(made.secret, event.id, int(each.at.timestamp()), event.body)
            for each in engine.sent
        ]
        assert len({each.header("webhook-timestamp") for each in engine.sent}) == 3
        [delivery] = await engine.harness.deliveries()
        assert (delivery.status, delivery.attempt_count) == (DeliveryStatus.DELIVERED, 3)

    run_scenarios(scenario)


def test_a_retry_by_hand_is_a_new_budget_of_the_same_event_to_the_url_and_secrets_of_now(
    run_scenarios: RunScenarios,
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        harness = engine.harness
        webhooks = harness.service.webhooks
        first = (await harness.endpoint()).view.endpoint
        engine.transport.will(URL, 500, 500, 500)
        async with engine.delivering():
            delivery = await harness.complete()
            await engine.later(HOUR)
            await harness.do(webhooks.change, harness.owner, first.id, _moved())
            rotated = await harness.do(webhooks.rotate_secret, harness.owner, first.id)
            engine.transport.will(NEW_URL, 500, 200)
            await harness.do(harness.service.redeliver.one, harness.owner, first.id, delivery.id)
            asked_at = engine.clock.now()
            await engine.later(HOUR)
            [ended] = await harness.deliveries()
        again = engine.sent[3:]
        assert [each.request.url.text for each in again] == [NEW_URL, NEW_URL]
        assert [(each.at - asked_at).total_seconds() for each in again] == [0.0, 60.0]
        assert {each.header("webhook-id") for each in engine.sent} == {str(delivery.event_id)}
        newest = [each.header("webhook-signature").split(" ")[0] for each in again]
        assert newest == [
            signature(
                rotated.secret, delivery.event_id, int(each.at.timestamp()), each.request.body
            )
            for each in again
        ]
        assert (ended.status, ended.budget, ended.attempt_count) == (DeliveryStatus.DELIVERED, 2, 5)
        numbers = [(each.budget, each.number) for each in await engine.attempts(delivery.id)]
        assert numbers == [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2)]

    run_scenarios(scenario)


@pytest.mark.parametrize("before", [[200], [500, 500, 500]], ids=["delivered", "failed"])
def test_a_retry_by_hand_is_three_attempts_of_the_same_event_and_no_more(
    run_scenarios: RunScenarios, before: list[int]
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        harness = engine.harness
        await harness.endpoint()
        engine.transport.will(URL, *before, 500, 500, 500)
        async with engine.delivering():
            delivery = await harness.complete()
            await engine.later(HOUR)
            assert len(engine.sent) == len(before)
            await harness.do(
                harness.service.redeliver.one, harness.owner, delivery.webhook_id, delivery.id
            )
            asked_at = engine.clock.now()
            await engine.later(2 * HOUR)
        again = engine.sent[len(before) :]
        assert [(each.at - asked_at).total_seconds() for each in again] == [0.0, 60.0, 360.0]
        assert {each.header("webhook-id") for each in engine.sent} == {str(delivery.event_id)}
        assert {each.request.body for each in again} == {engine.sent[0].request.body}
        assert await harness.queued() == set()

    run_scenarios(scenario)


def test_a_test_event_goes_through_the_ordinary_queue(run_scenarios: RunScenarios) -> None:
    async def scenario(engine: EngineHarness) -> None:
        harness = engine.harness
        webhook_id = (await harness.endpoint()).view.endpoint.id
        engine.transport.will(URL, 500, 200)
        async with engine.delivering():
            delivery = await harness.do(
                harness.service.webhooks.send_test, harness.owner, webhook_id
            )
            await engine.later(HOUR)
        assert engine.offsets() == [0.0, 60.0]
        attempts = await engine.attempts(delivery.id)
        assert {each.trigger for each in attempts} == {Trigger.TEST}
        assert b'"type":"webhook.test"' in engine.sent[0].request.body

    run_scenarios(scenario)


def test_for_24_hours_after_a_rotation_both_secrets_sign_and_then_the_new_one_alone(
    run_scenarios: RunScenarios,
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        harness = engine.harness
        made = await harness.endpoint()
        async with engine.delivering(engine.dispatcher(lease=DAY)):
            await harness.complete()
            await engine.later()
            rotated = await harness.do(
                harness.service.webhooks.rotate_secret, harness.owner, made.view.endpoint.id
            )
            await harness.complete()
            await engine.later(DAY - HOUR / 60)
            await harness.complete()
            await engine.later(HOUR / 60)
            await harness.complete()
            await engine.later()
        old, new = made.secret, rotated.secret
        assert [each.header("webhook-signature") for each in engine.sent] == [
            _signed(engine, place, *secrets)
            for place, secrets in enumerate([(old,), (new, old), (new, old), (new,)])
        ]

    run_scenarios(scenario)


def test_a_bulk_retry_sends_everything_again_that_failed(run_scenarios: RunScenarios) -> None:
    async def scenario(engine: EngineHarness) -> None:
        harness = engine.harness
        webhook_id = (await harness.endpoint()).view.endpoint.id
        engine.transport.will(URL, *[500] * 15)
        async with engine.delivering():
            for _ in range(5):
                await harness.complete()
            await engine.later(HOUR)
            job = await harness.do(
                harness.service.redeliver.start_bulk,
                harness.owner,
                webhook_id,
                since=engine.clock.now() - DAY,
                until=None,
                statuses=[],
                dry_run=False,
            )
            step = harness.service.redeliver.bulk_step
            while await harness.do(step, job.account_id, job.id, 2):
                pass
            await engine.later()
            ended = await harness.deliveries()
        assert [each.status for each in ended] == [DeliveryStatus.DELIVERED] * 5
        assert len(engine.sent) == 20
        done = await harness.see(harness.service.redeliver.bulk, harness.owner, webhook_id, job.id)
        assert (done.count, done.retried, done.state) == (5, 5, "finished")

    run_scenarios(scenario)


def _signed(engine: EngineHarness, place: int, *secrets: SigningSecret) -> str:
    sent = engine.sent[place]
    timestamp, body = int(sent.at.timestamp()), sent.request.body
    return " ".join(signature(each, sent.header("webhook-id"), timestamp, body) for each in secrets)


def _moved() -> EndpointChange:
    return EndpointChange(url=NEW_URL)
