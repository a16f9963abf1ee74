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
from tests.support.engine_harness import HOUR, MINUTE, EngineHarness, RunScenarios

URL = "https://hooks.example.com/cue"
SLOW_FAILURE = Answer(status=500, seconds=10)
Stopping = Callable[[EngineHarness, UUID, Project], Awaitable[None]]


async def disable(engine: EngineHarness, webhook_id: UUID, project: Project) -> None:
    await engine.harness.enable(webhook_id, enabled=False)


async def delete_project(engine: EngineHarness, webhook_id: UUID, project: Project) -> None:
    harness = engine.harness
    await harness.do(harness.service.projects.delete, harness.owner, project.id)


async def end_access(engine: EngineHarness, webhook_id: UUID, project: Project) -> None:
    harness = engine.harness
    change = ProjectChange(sets_access=True, access_expires_at=engine.clock.now())
    await harness.do(harness.service.projects.change, harness.owner, project.id, change)


STOPS = [
    pytest.param(disable, CancelReason.ENDPOINT_DISABLED, id="disable"),
    pytest.param(delete_project, CancelReason.PROJECT_DELETED, id="delete project"),
    pytest.param(end_access, CancelReason.PROJECT_ACCESS_EXPIRED, id="end access"),
]


async def begun(engine: EngineHarness) -> tuple[UUID, Project]:
    return (await engine.harness.endpoint()).view.endpoint.id, await engine.harness.project()


async def only(engine: EngineHarness) -> Delivery:
    [delivery] = await engine.harness.deliveries()
    return delivery


@pytest.mark.parametrize(("stop", "reason"), STOPS)
def test_what_waits_for_its_next_attempt_is_cancelled_in_the_same_transaction(
    run_scenarios: RunScenarios, stop: Stopping, reason: CancelReason
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        webhook_id, project = await begun(engine)
        engine.transport.will(URL, 500)
        async with engine.delivering():
            await engine.harness.complete(project)
            await engine.later(MINUTE / 2)
            await stop(engine, webhook_id, project)
            stopped, at = await only(engine), engine.clock.now()
            await engine.later(HOUR)
        assert (stopped.status, stopped.reason) == (DeliveryStatus.CANCELLED, reason)
        assert (stopped.finished_at, stopped.attempt_count) == (at, 1)
        assert len(engine.sent) == 1

    run_scenarios(scenario)


@pytest.mark.parametrize(("stop", "reason"), STOPS)
def test_what_is_in_flight_finishes_and_gets_no_further_attempt(
    run_scenarios: RunScenarios, stop: Stopping, reason: CancelReason
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        webhook_id, project = await begun(engine)
        engine.transport.will(URL, SLOW_FAILURE)
        async with engine.delivering():
            await engine.harness.complete(project)
            await engine.later(MINUTE / 30)
            await stop(engine, webhook_id, project)
            assert (await only(engine)).status is DeliveryStatus.DELIVERING
            await engine.later(HOUR)
            ended = await only(engine)
        assert (ended.status, ended.reason) == (DeliveryStatus.CANCELLED, reason)
        [attempt] = await engine.attempts(ended.id)
        assert (attempt.outcome, attempt.duration_ms) == (Outcome.HTTP_ERROR, 10_000)
        assert len(engine.sent) == 1

    run_scenarios(scenario)


@pytest.mark.parametrize(("stop", "reason"), STOPS)
def test_what_is_in_flight_may_still_be_delivered(
    run_scenarios: RunScenarios, stop: Stopping, reason: CancelReason
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        webhook_id, project = await begun(engine)
        engine.transport.will(URL, Answer(seconds=10))
        async with engine.delivering():
            await engine.harness.complete(project)
            await engine.later(MINUTE / 30)
            await stop(engine, webhook_id, project)
            await engine.later(HOUR)
            ended = await only(engine)
        assert (ended.status, ended.reason) == (DeliveryStatus.DELIVERED, None)

    run_scenarios(scenario)


@pytest.mark.parametrize(("stop", "reason"), STOPS)
def test_what_waits_in_memory_behind_a_slow_one_is_not_sent_any_more(
    run_scenarios: RunScenarios, stop: Stopping, reason: CancelReason
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        webhook_id, project = await begun(engine)
        engine.transport.will(URL, HANGS)
        async with engine.delivering(engine.dispatcher(cap=1)):
            await engine.harness.complete(await engine.harness.project())
            await engine.later()
            waiting = [await _exported_again(engine, project) for _ in range(5)]
            await stop(engine, webhook_id, project)
            await engine.later(HOUR)
            ended = {each.id: each for each in await engine.harness.deliveries()}
        of_it = [ended[each] for each in waiting]
        assert {(each.status, each.reason) for each in of_it} == {
            (DeliveryStatus.CANCELLED, reason)
        }
        sent = {each.header("webhook-id") for each in engine.sent}
        assert not sent & {str(each.event_id) for each in of_it}

    run_scenarios(scenario)


@pytest.mark.parametrize(("stop", "reason"), STOPS)
def test_a_worker_that_dies_with_a_stopped_one_in_hand_leaves_it_cancelled(
    run_scenarios: RunScenarios, stop: Stopping, reason: CancelReason
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        webhook_id, project = await begun(engine)
        engine.transport.will(URL, HANGS)
        async with engine.crashing():
            await engine.harness.complete(project)
            await engine.later(MINUTE / 30)
            await stop(engine, webhook_id, project)
        await engine.later(2 * HOUR)
        await engine.take_over()
        async with engine.delivering():
            await engine.later(HOUR)
            ended = await only(engine)
        assert (ended.status, ended.reason) == (DeliveryStatus.CANCELLED, reason)
        assert len(engine.sent) == 1

    run_scenarios(scenario)


def test_an_access_window_that_ended_unnoticed_stops_the_next_attempt(
    run_scenarios: RunScenarios,
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        await engine.harness.endpoint()
        project = await engine.harness.project(
            access_expires_at=engine.clock.now() + timedelta(seconds=59)
        )
        engine.transport.will(URL, 500)
        async with engine.delivering():
            await engine.harness.complete(project)
            await engine.later(HOUR)
            ended = await only(engine)
        assert ended.reason is CancelReason.PROJECT_ACCESS_EXPIRED
        assert len(engine.sent) == 1

    run_scenarios(scenario)


def test_an_access_window_that_was_extended_in_time_does_not(run_scenarios: RunScenarios) -> None:
    async def scenario(engine: EngineHarness) -> None:
        harness = engine.harness
        await harness.endpoint()
        until = engine.clock.now() + timedelta(seconds=59)
        project = await harness.project(access_expires_at=until)
        engine.transport.will(URL, 500)
        async with engine.delivering():
            await harness.complete(project)
            await engine.later(MINUTE / 2)
            change = ProjectChange(sets_access=True, access_expires_at=until + HOUR)
            await harness.do(harness.service.projects.change, harness.owner, project.id, change)
            await engine.later(HOUR)
        assert (await only(engine)).status is DeliveryStatus.DELIVERED
        assert engine.offsets() == [0.0, 60.0]

    run_scenarios(scenario)


def test_deleting_an_endpoint_takes_its_history_and_its_pending_ones(
    run_scenarios: RunScenarios,
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        harness = engine.harness
        webhook_id = (await harness.endpoint()).view.endpoint.id
        engine.transport.will(URL, 500, HANGS)
        async with engine.delivering():
            await harness.complete()
            await engine.later()
            await harness.complete()
            await engine.later()
            await harness.do(harness.service.webhooks.delete, harness.owner, webhook_id)
            await engine.later(HOUR)
        rows = await harness.dump()
        assert [rows[name] for name in ("deliveries", "attempts", "queue")] == [[], [], []]
        assert len(engine.sent) == 2

    run_scenarios(scenario)


def test_what_happened_while_the_endpoint_was_disabled_can_be_sent_once_it_is_enabled(
    run_scenarios: RunScenarios,
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        harness = engine.harness
        webhook_id = (await harness.endpoint()).view.endpoint.id
        await harness.enable(webhook_id, enabled=False)
        async with engine.delivering():
            missed = await harness.complete()
            await engine.later(HOUR)
            assert (missed.status, engine.sent) == (DeliveryStatus.CANCELLED, [])
            await harness.enable(webhook_id, enabled=True)
            await harness.do(harness.service.redeliver.one, harness.owner, webhook_id, missed.id)
            await engine.later()
            ended = await only(engine)
        assert (ended.status, ended.budget) == (DeliveryStatus.DELIVERED, 2)

    run_scenarios(scenario)


async def _exported_again(engine: EngineHarness, project: Project) -> UUID:
    harness = engine.harness
    stored = await harness.stored(project)
    if stored.status == "completed":
        await harness.report(harness.milestone(project, "exporting"))
    return (await harness.complete(project)).id


@pytest.mark.parametrize("seconds", [2, 10, 3_600])
def test_a_clock_that_is_set_back_does_not_make_old_knowledge_new(
    run_scenarios: RunScenarios, seconds: int
) -> None:
    """A second delivery waits in memory behind the first one, which takes its whole time."""

    async def scenario(engine: EngineHarness) -> None:
        made = await engine.harness.endpoint()
        engine.transport.will(URL, HANGS)
        async with engine.delivering(engine.dispatcher(cap=1)):
            for _ in range(2):
                await engine.harness.report(
                    engine.harness.milestone(await engine.harness.project())
                )
            await engine.later()
            engine.clock.step(timedelta(seconds=-seconds))
            await engine.later(timedelta(seconds=5))
            await engine.harness.enable(made.view.endpoint.id, enabled=False)
            await engine.later(2 * HOUR)
        assert len(engine.sent) == 1
        assert {each.reason for each in await engine.harness.deliveries()} == {
            CancelReason.ENDPOINT_DISABLED
        }

    run_scenarios(scenario)


def test_a_hand_over_of_before_the_clock_was_set_back_is_asked_for_again(
    run_embedded: RunScenarios, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How old it is cannot be told: the endpoint may have been disabled since."""

    async def scenario(engine: EngineHarness) -> None:
        made = await engine.harness.endpoint()
        take = Dispatcher.take
        late: list[Callable[[], None]] = []
        monkeypatch.setattr(
            Dispatcher, "take", lambda *reported: late.append(partial(take, *reported))
        )
        async with engine.delivering():
            await engine.harness.report(engine.harness.milestone(await engine.harness.project()))
            await engine.harness.enable(made.view.endpoint.id, enabled=False)
            engine.clock.step(timedelta(seconds=-10))
            await engine.later(timedelta(seconds=5))
            late.pop()()
            await engine.later(MINUTE)
        assert engine.sent == []
        assert [each.reason for each in await engine.harness.deliveries()] == [
            CancelReason.ENDPOINT_DISABLED
        ]

    run_embedded(scenario)
