"""Disabling, deleting and expiry stop what is pending; what is in flight may finish, once."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial
from uuid import UUID

import pytest

from cuepost.application.manage_projects import ProjectChange
from cuepost.domain.attempt import Outcome
from cuepost.domain.delivery import CancelReason, Delivery, DeliveryStatus
from cuepost.domain.project import Project
from cuepost.engine.dispatcher import Dispatcher
from cuepost.testing import HANGS, Answer
from tests.support.stage import HOUR, MINUTE, Play, Stage

URL = "https://hooks.example.com/cue"
SLOW_FAILURE = Answer(status=500, seconds=10)
Stopping = Callable[[Stage, UUID, Project], Awaitable[None]]


async def disable(stage: Stage, webhook_id: UUID, project: Project) -> None:
    await stage.world.enable(webhook_id, enabled=False)


async def delete_project(stage: Stage, webhook_id: UUID, project: Project) -> None:
    world = stage.world
    await world.do(world.service.projects.delete, world.owner, project.id)


async def end_access(stage: Stage, webhook_id: UUID, project: Project) -> None:
    world = stage.world
    change = ProjectChange(sets_access=True, access_expires_at=stage.clock.now())
    await world.do(world.service.projects.change, world.owner, project.id, change)


STOPS = [
    pytest.param(disable, CancelReason.ENDPOINT_DISABLED, id="disable"),
    pytest.param(delete_project, CancelReason.PROJECT_DELETED, id="delete project"),
    pytest.param(end_access, CancelReason.PROJECT_ACCESS_EXPIRED, id="end access"),
]


async def begun(stage: Stage) -> tuple[UUID, Project]:
    return (await stage.world.endpoint()).view.endpoint.id, await stage.world.project()


async def only(stage: Stage) -> Delivery:
    [delivery] = await stage.world.deliveries()
    return delivery


@pytest.mark.parametrize(("stop", "reason"), STOPS)
def test_what_waits_for_its_next_attempt_is_cancelled_in_the_same_transaction(
    play: Play, stop: Stopping, reason: CancelReason
) -> None:
    async def scenario(stage: Stage) -> None:
        webhook_id, project = await begun(stage)
        stage.transport.will(URL, 500)
        async with stage.delivering():
            await stage.world.complete(project)
            await stage.later(MINUTE / 2)
            await stop(stage, webhook_id, project)
            stopped, at = await only(stage), stage.clock.now()
            await stage.later(HOUR)
        assert (stopped.status, stopped.reason) == (DeliveryStatus.CANCELLED, reason)
        assert (stopped.finished_at, stopped.attempt_count) == (at, 1)
        assert len(stage.sent) == 1

    play(scenario)


@pytest.mark.parametrize(("stop", "reason"), STOPS)
def test_what_is_in_flight_finishes_and_gets_no_further_attempt(
    play: Play, stop: Stopping, reason: CancelReason
) -> None:
    async def scenario(stage: Stage) -> None:
        webhook_id, project = await begun(stage)
        stage.transport.will(URL, SLOW_FAILURE)
        async with stage.delivering():
            await stage.world.complete(project)
            await stage.later(MINUTE / 30)
            await stop(stage, webhook_id, project)
            assert (await only(stage)).status is DeliveryStatus.DELIVERING
            await stage.later(HOUR)
            ended = await only(stage)
        assert (ended.status, ended.reason) == (DeliveryStatus.CANCELLED, reason)
        [attempt] = await stage.attempts(ended.id)
        assert (attempt.outcome, attempt.duration_ms) == (Outcome.HTTP_ERROR, 10_000)
        assert len(stage.sent) == 1

    play(scenario)


@pytest.mark.parametrize(("stop", "reason"), STOPS)
def test_what_is_in_flight_may_still_be_delivered(
    play: Play, stop: Stopping, reason: CancelReason
) -> None:
    async def scenario(stage: Stage) -> None:
        webhook_id, project = await begun(stage)
        stage.transport.will(URL, Answer(seconds=10))
        async with stage.delivering():
            await stage.world.complete(project)
            await stage.later(MINUTE / 30)
            await stop(stage, webhook_id, project)
            await stage.later(HOUR)
            ended = await only(stage)
        assert (ended.status, ended.reason) == (DeliveryStatus.DELIVERED, None)

    play(scenario)


@pytest.mark.parametrize(("stop", "reason"), STOPS)
def test_what_waits_in_memory_behind_a_slow_one_is_not_sent_any_more(
    play: Play, stop: Stopping, reason: CancelReason
) -> None:
    async def scenario(stage: Stage) -> None:
        webhook_id, project = await begun(stage)
        stage.transport.will(URL, HANGS)
        async with stage.delivering(stage.dispatcher(cap=1)):
            await stage.world.complete(await stage.world.project())
            await stage.later()
            waiting = [await _exported_again(stage, project) for _ in range(5)]
            await stop(stage, webhook_id, project)
            await stage.later(HOUR)
            ended = {each.id: each for each in await stage.world.deliveries()}
        of_it = [ended[each] for each in waiting]
        assert {(each.status, each.reason) for each in of_it} == {
            (DeliveryStatus.CANCELLED, reason)
        }
        sent = {each.header("webhook-id") for each in stage.sent}
        assert not sent & {str(each.event_id) for each in of_it}

    play(scenario)


@pytest.mark.parametrize(("stop", "reason"), STOPS)
def test_a_worker_that_dies_with_a_stopped_one_in_hand_leaves_it_cancelled(
    play: Play, stop: Stopping, reason: CancelReason
) -> None:
    async def scenario(stage: Stage) -> None:
        webhook_id, project = await begun(stage)
        stage.transport.will(URL, HANGS)
        async with stage.crashing():
            await stage.world.complete(project)
            await stage.later(MINUTE / 30)
            await stop(stage, webhook_id, project)
        await stage.later(2 * HOUR)
        await stage.take_over()
        async with stage.delivering():
            await stage.later(HOUR)
            ended = await only(stage)
        assert (ended.status, ended.reason) == (DeliveryStatus.CANCELLED, reason)
        assert len(stage.sent) == 1

    play(scenario)


def test_an_access_window_that_ended_unnoticed_stops_the_next_attempt(play: Play) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.world.endpoint()
        project = await stage.world.project(
            access_expires_at=stage.clock.now() + timedelta(seconds=59)
        )
        stage.transport.will(URL, 500)
        async with stage.delivering():
            await stage.world.complete(project)
            await stage.later(HOUR)
            ended = await only(stage)
        assert ended.reason is CancelReason.PROJECT_ACCESS_EXPIRED
        assert len(stage.sent) == 1

    play(scenario)


def test_an_access_window_that_was_extended_in_time_does_not(play: Play) -> None:
    async def scenario(stage: Stage) -> None:
        world = stage.world
        await world.endpoint()
        until = stage.clock.now() + timedelta(seconds=59)
        project = await world.project(access_expires_at=until)
        stage.transport.will(URL, 500)
        async with stage.delivering():
            await world.complete(project)
            await stage.later(MINUTE / 2)
            change = ProjectChange(sets_access=True, access_expires_at=until + HOUR)
            await world.do(world.service.projects.change, world.owner, project.id, change)
            await stage.later(HOUR)
        assert (await only(stage)).status is DeliveryStatus.DELIVERED
        assert stage.offsets() == [0.0, 60.0]

    play(scenario)


def test_deleting_an_endpoint_takes_its_history_and_its_pending_ones(play: Play) -> None:
    async def scenario(stage: Stage) -> None:
        world = stage.world
        webhook_id = (await world.endpoint()).view.endpoint.id
        stage.transport.will(URL, 500, HANGS)
        async with stage.delivering():
            await world.complete()
            await stage.later()
            await world.complete()
            await stage.later()
            await world.do(world.service.webhooks.delete, world.owner, webhook_id)
            await stage.later(HOUR)
        rows = await world.dump()
        assert [rows[name] for name in ("deliveries", "attempts", "queue")] == [[], [], []]
        assert len(stage.sent) == 2

    play(scenario)


def test_what_happened_while_the_endpoint_was_disabled_can_be_sent_once_it_is_enabled(
    play: Play,
) -> None:
    async def scenario(stage: Stage) -> None:
        world = stage.world
        webhook_id = (await world.endpoint()).view.endpoint.id
        await world.enable(webhook_id, enabled=False)
        async with stage.delivering():
            missed = await world.complete()
            await stage.later(HOUR)
            assert (missed.status, stage.sent) == (DeliveryStatus.CANCELLED, [])
            await world.enable(webhook_id, enabled=True)
            await world.do(world.service.redeliver.one, world.owner, webhook_id, missed.id)
            await stage.later()
            ended = await only(stage)
        assert (ended.status, ended.budget) == (DeliveryStatus.DELIVERED, 2)

    play(scenario)


async def _exported_again(stage: Stage, project: Project) -> UUID:
    world = stage.world
    stored = await world.stored(project)
    if stored.status == "completed":
        await world.report(world.milestone(project, "exporting"))
    return (await world.complete(project)).id


@pytest.mark.parametrize("seconds", [2, 10, 3_600])
def test_a_clock_that_is_set_back_does_not_make_old_knowledge_new(play: Play, seconds: int) -> None:
    """A second delivery waits in memory behind the first one, which takes its whole time."""

    async def scenario(stage: Stage) -> None:
        made = await stage.world.endpoint()
        stage.transport.will(URL, HANGS)
        async with stage.delivering(stage.dispatcher(cap=1)):
            for _ in range(2):
                await stage.world.report(stage.world.milestone(await stage.world.project()))
            await stage.later()
            stage.clock.step(timedelta(seconds=-seconds))
            await stage.later(timedelta(seconds=5))
            await stage.world.enable(made.view.endpoint.id, enabled=False)
            await stage.later(2 * HOUR)
        assert len(stage.sent) == 1
        assert {each.reason for each in await stage.world.deliveries()} == {
            CancelReason.ENDPOINT_DISABLED
        }

    play(scenario)


def test_a_hand_over_of_before_the_clock_was_set_back_is_asked_for_again(
    play_embedded: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How old it is cannot be told: the endpoint may have been disabled since."""

    async def scenario(stage: Stage) -> None:
        made = await stage.world.endpoint()
        take = Dispatcher.take
        late: list[Callable[[], None]] = []
        monkeypatch.setattr(Dispatcher, "take", lambda *told: late.append(partial(take, *told)))
        async with stage.delivering():
            await stage.world.report(stage.world.milestone(await stage.world.project()))
            await stage.world.enable(made.view.endpoint.id, enabled=False)
            stage.clock.step(timedelta(seconds=-10))
            await stage.later(timedelta(seconds=5))
            late.pop()()
            await stage.later(MINUTE)
        assert stage.sent == []
        assert [each.reason for each in await stage.world.deliveries()] == [
            CancelReason.ENDPOINT_DISABLED
        ]

    play_embedded(scenario)
