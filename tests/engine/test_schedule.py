"""Attempts come at the promised instants, with the same bytes, each signed anew."""

import pytest

from cuepost.application.manage_webhooks import EndpointChange
from cuepost.domain.attempt import Outcome
from cuepost.domain.delivery import Delivery, DeliveryStatus, Trigger
from cuepost.domain.signing import SigningSecret, signature
from cuepost.testing import HANGS, Answer
from tests.support.stage import DAY, HOUR, Play, Stage

URL = "https://hooks.example.com/cue"
NEW_URL = "https://elsewhere.example.com/cue"


async def three_failures(stage: Stage, *answers: int | Outcome | Answer) -> Delivery:
    await stage.world.endpoint()
    stage.transport.will(URL, *answers)
    async with stage.delivering():
        await stage.world.complete()
        await stage.later(HOUR)
        [ended] = await stage.world.deliveries()
    return ended


def pauses(stage: Stage) -> list[float]:
    """Seconds from the end of each attempt to the start of the next."""
    ends = [each.ended_at for each in stage.sent if each.ended_at is not None]
    assert len(ends) == len(stage.sent)
    return [
        (after.at - end).total_seconds() for end, after in zip(ends, stage.sent[1:], strict=False)
    ]


@pytest.mark.parametrize("took", [0.0, 1.5, 14.999])
def test_the_second_comes_60_s_after_the_end_of_the_first_the_third_300_s_after_the_second(
    play: Play, took: float
) -> None:
    async def scenario(stage: Stage) -> None:
        ended = await three_failures(stage, *[Answer(status=503, seconds=took)] * 3)
        assert pauses(stage) == [60.0, 300.0]
        assert (ended.status, ended.attempt_count) == (DeliveryStatus.FAILED, 3)
        attempts = await stage.attempts(ended.id)
        assert [(each.budget, each.number) for each in attempts] == [(1, 1), (1, 2), (1, 3)]
        assert [each.started_at for each in attempts] == [each.at for each in stage.sent]

    play(scenario)


def test_after_the_third_failure_nothing_is_ever_sent_again_by_itself(play: Play) -> None:
    async def scenario(stage: Stage) -> None:
        world = stage.world
        ended = await three_failures(stage, 500, Outcome.CONNECT_ERROR, HANGS)
        assert (ended.status, ended.attempt_count) == (DeliveryStatus.FAILED, 3)
        assert (ended.next_attempt_at, await world.queued()) == (None, set())
        # Neither time nor a restart, nor that the receiver is well again and gets other events.
        for wait in (HOUR, DAY, 28 * DAY):
            # It looks for work every day: every ten minutes of a month would take too long.
            restarted = stage.dispatcher(longest_sleep=DAY, lease=30 * DAY)
            async with stage.delivering(restarted):
                other = await world.complete()
                await stage.later(wait)
            assert stage.sent[-1].header("webhook-id") == str(other.event_id)
        of_ended = [each for each in stage.sent if each.header("webhook-id") == str(ended.event_id)]
        assert (len(of_ended), len(stage.sent)) == (3, 6)
        assert [each for each in await world.deliveries() if each.id == ended.id] == [ended]

    play(scenario)


def test_with_the_largest_jitter_they_come_less_than_a_tenth_later(play: Play) -> None:
    async def scenario(stage: Stage) -> None:
        stage.jitter = lambda: 0.999
        await three_failures(stage, *[Answer(status=503, seconds=0.7)] * 3)
        assert pauses(stage) == [65.994, 329.97]

    play(scenario)


def test_a_receiver_that_hangs_is_given_15_s(play: Play) -> None:
    async def scenario(stage: Stage) -> None:
        ended = await three_failures(stage, HANGS, HANGS, HANGS)
        assert stage.offsets() == [0.0, 75.0, 390.0]
        outcomes = {each.outcome for each in await stage.attempts(ended.id)}
        assert outcomes == {Outcome.TIMEOUT}

    play(scenario)


@pytest.mark.parametrize(("took", "requests"), [(15.0, 1), (15.001, 2)])
def test_an_acknowledgement_counts_until_15_s_and_not_after(
    play: Play, took: float, requests: int
) -> None:
    async def scenario(stage: Stage) -> None:
        await three_failures(stage, Answer(status=204, seconds=took), 204)
        assert len(stage.sent) == requests

    play(scenario)


def test_every_attempt_has_the_same_bytes_and_a_signature_of_its_own_second(play: Play) -> None:
    async def scenario(stage: Stage) -> None:
        made = await stage.world.endpoint()
        stage.transport.will(URL, 500, Outcome.CONNECT_ERROR)
        async with stage.delivering():
            await stage.world.complete()
            await stage.later(HOUR)
        [event] = await stage.world.events()
        assert {each.request.body for each in stage.sent} == {event.body}
        assert [each.header("webhook-signature") for each in stage.sent] == [
            signature(made.secret, event.id, int(each.at.timestamp()), event.body)
            for each in stage.sent
        ]
        assert len({each.header("webhook-timestamp") for each in stage.sent}) == 3
        [delivery] = await stage.world.deliveries()
        assert (delivery.status, delivery.attempt_count) == (DeliveryStatus.DELIVERED, 3)

    play(scenario)


def test_a_retry_by_hand_is_a_new_budget_of_the_same_event_to_the_url_and_secrets_of_now(
    play: Play,
) -> None:
    async def scenario(stage: Stage) -> None:
        world = stage.world
        webhooks = world.service.webhooks
        first = (await world.endpoint()).view.endpoint
        stage.transport.will(URL, 500, 500, 500)
        async with stage.delivering():
            delivery = await world.complete()
            await stage.later(HOUR)
            await world.do(webhooks.change, world.owner, first.id, _moved())
            rotated = await world.do(webhooks.rotate_secret, world.owner, first.id)
            stage.transport.will(NEW_URL, 500, 200)
            await world.do(world.service.redeliver.one, world.owner, first.id, delivery.id)
            asked_at = stage.clock.now()
            await stage.later(HOUR)
            [ended] = await world.deliveries()
        again = stage.sent[3:]
        assert [each.request.url.text for each in again] == [NEW_URL, NEW_URL]
        assert [(each.at - asked_at).total_seconds() for each in again] == [0.0, 60.0]
        assert {each.header("webhook-id") for each in stage.sent} == {str(delivery.event_id)}
        newest = [each.header("webhook-signature").split(" ")[0] for each in again]
        assert newest == [
            signature(
                rotated.secret, delivery.event_id, int(each.at.timestamp()), each.request.body
            )
            for each in again
        ]
        assert (ended.status, ended.budget, ended.attempt_count) == (DeliveryStatus.DELIVERED, 2, 5)
        numbers = [(each.budget, each.number) for each in await stage.attempts(delivery.id)]
        assert numbers == [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2)]

    play(scenario)


@pytest.mark.parametrize("before", [[200], [500, 500, 500]], ids=["delivered", "failed"])
def test_a_retry_by_hand_is_three_attempts_of_the_same_event_and_no_more(
    play: Play, before: list[int]
) -> None:
    async def scenario(stage: Stage) -> None:
        world = stage.world
        await world.endpoint()
        stage.transport.will(URL, *before, 500, 500, 500)
        async with stage.delivering():
            delivery = await world.complete()
            await stage.later(HOUR)
            assert len(stage.sent) == len(before)
            await world.do(
                world.service.redeliver.one, world.owner, delivery.webhook_id, delivery.id
            )
            asked_at = stage.clock.now()
            await stage.later(2 * HOUR)
        again = stage.sent[len(before) :]
        assert [(each.at - asked_at).total_seconds() for each in again] == [0.0, 60.0, 360.0]
        assert {each.header("webhook-id") for each in stage.sent} == {str(delivery.event_id)}
        assert {each.request.body for each in again} == {stage.sent[0].request.body}
        assert await world.queued() == set()

    play(scenario)


def test_a_test_event_goes_through_the_ordinary_queue(play: Play) -> None:
    async def scenario(stage: Stage) -> None:
        world = stage.world
        webhook_id = (await world.endpoint()).view.endpoint.id
        stage.transport.will(URL, 500, 200)
        async with stage.delivering():
            delivery = await world.do(world.service.webhooks.send_test, world.owner, webhook_id)
            await stage.later(HOUR)
        assert stage.offsets() == [0.0, 60.0]
        attempts = await stage.attempts(delivery.id)
        assert {each.trigger for each in attempts} == {Trigger.TEST}
        assert b'"type":"webhook.test"' in stage.sent[0].request.body

    play(scenario)


def test_for_24_hours_after_a_rotation_both_secrets_sign_and_then_the_new_one_alone(
    play: Play,
) -> None:
    async def scenario(stage: Stage) -> None:
        world = stage.world
        made = await world.endpoint()
        async with stage.delivering(stage.dispatcher(lease=DAY)):
            await world.complete()
            await stage.later()
            rotated = await world.do(
                world.service.webhooks.rotate_secret, world.owner, made.view.endpoint.id
            )
            await world.complete()
            await stage.later(DAY - HOUR / 60)
            await world.complete()
            await stage.later(HOUR / 60)
            await world.complete()
            await stage.later()
        old, new = made.secret, rotated.secret
        assert [each.header("webhook-signature") for each in stage.sent] == [
            _signed(stage, place, *secrets)
            for place, secrets in enumerate([(old,), (new, old), (new, old), (new,)])
        ]

    play(scenario)


def test_a_bulk_retry_sends_everything_again_that_failed(play: Play) -> None:
    async def scenario(stage: Stage) -> None:
        world = stage.world
        webhook_id = (await world.endpoint()).view.endpoint.id
        stage.transport.will(URL, *[500] * 15)
        async with stage.delivering():
            for _ in range(5):
                await world.complete()
            await stage.later(HOUR)
            job = await world.do(
                world.service.redeliver.start_bulk,
                world.owner,
                webhook_id,
                since=stage.clock.now() - DAY,
                until=None,
                statuses=[],
                dry_run=False,
            )
            step = world.service.redeliver.bulk_step
            while await world.do(step, job.account_id, job.id, 2):
                pass
            await stage.later()
            ended = await world.deliveries()
        assert [each.status for each in ended] == [DeliveryStatus.DELIVERED] * 5
        assert len(stage.sent) == 20
        done = await world.see(world.service.redeliver.bulk, world.owner, webhook_id, job.id)
        assert (done.count, done.retried, done.state) == (5, 5, "finished")

    play(scenario)


def _signed(stage: Stage, place: int, *secrets: SigningSecret) -> str:
    sent = stage.sent[place]
    timestamp, body = int(sent.at.timestamp()), sent.request.body
    return " ".join(signature(each, sent.header("webhook-id"), timestamp, body) for each in secrets)


def _moved() -> EndpointChange:
    return EndpointChange(url=NEW_URL)
