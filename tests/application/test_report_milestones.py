"""The pipeline reports milestones: accepted means committed, with the event and its deliveries."""

import asyncio
import json
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TypeVar

import pytest

from cuepost.adapters.storage.records.deliveries import DeliveryRecords
from cuepost.domain.delivery import Delivery, DeliveryStatus, Trigger
from cuepost.domain.errors import MissingScope
from cuepost.domain.event import Event, SilenceReason
from cuepost.domain.project import ProjectStatus, Stage
from cuepost.ports.records import ReportAnswer
from cuepost.ports.store import Action, Priority, Store
from tests.application.world import RULES, World

T = TypeVar("T")


async def test_an_accepted_milestone_moves_the_project_and_queues_its_event(world: World) -> None:
    endpoint = (await world.endpoint()).view.endpoint
    project = await world.project(stage=Stage.EXPORT)
    world.clock.advance(1)
    now = world.clock.now()
    [answer] = await world.report(world.milestone(project, report_id="r1"))
    assert answer.event_id is not None
    assert answer == ReportAnswer("r1", True, answer.event_id, True, None)
    assert await world.stored(project) == replace(
        project, status=ProjectStatus.COMPLETED, updated_at=now, exported_at=now
    )
    [event], [delivery] = await world.events(), await world.deliveries()
    assert event == Event(
        account_id=world.account.id,
        id=answer.event_id,
        type="project.completed",
        created_at=now,
        project_id=project.id,
        occurred_at=now,
        body=event.body,
        reason=None,
    )
    assert delivery == Delivery(
        account_id=world.account.id,
        id=delivery.id,
        webhook_id=endpoint.id,
        event_id=event.id,
        event_type="project.completed",
        project_id=project.id,
        trigger=Trigger.AUTOMATIC,
        status=DeliveryStatus.PENDING,
        created_at=now,
        next_attempt_at=now,
    )
    assert await world.queued() == {delivery.id}


async def test_the_stored_body_is_the_frozen_event_with_the_result_address(world: World) -> None:
    project = await world.project()
    [answer] = await world.report(world.milestone(project))
    [event] = await world.events()
    assert (
        event.body
        == (
            f'{{"id":"{answer.event_id}","type":"project.completed",'
            '"createdAt":"2026-01-02T03:04:05.678Z",'
            f'"data":{{"projectId":"{project.id}","status":"completed","stage":"export",'
            f'"resultUrl":"https://cuepost.example.com/v1/projects/{project.id}/result"}}}}'
        ).encode()
    )


async def test_when_it_happened_is_kept_beside_when_it_was_accepted(world: World) -> None:
    earlier = world.clock.now() - timedelta(minutes=5)
    await world.report(world.milestone(await world.project(), occurred_at=earlier))
    [event] = await world.events()
    assert (event.occurred_at, event.created_at) == (earlier, world.clock.now())
    assert json.loads(event.body)["createdAt"] == "2026-01-02T03:04:05.678Z"


async def test_each_subscribed_endpoint_of_the_account_gets_its_own_delivery(world: World) -> None:
    everything = await world.endpoint("project.completed", "project.ready")
    defaults = await world.endpoint()
    await world.endpoint("project.ready")
    stranger = await world.new_owner()
    await world.endpoint(caller=stranger)
    await world.report(world.milestone(await world.project()))
    made = await world.deliveries()
    assert {each.webhook_id for each in made} == {
        everything.view.endpoint.id,
        defaults.view.endpoint.id,
    }
    assert len({each.event_id for each in made}) == 1
    assert await world.deliveries(stranger) == []


@pytest.mark.parametrize(
    ("before", "reported", "event_type"),
    [
        (ProjectStatus.EXPORTING, "completed", "project.completed"),
        (ProjectStatus.PROCESSING, "failed", "project.failed"),
        (ProjectStatus.EXPORTING, "failed", "project.failed"),
        (ProjectStatus.PROCESSING, "ready", "project.ready"),
        (ProjectStatus.QUEUED, "cancelled", "project.cancelled"),
    ],
)
async def test_each_milestone_sends_the_event_of_its_status(
    world: World, before: ProjectStatus, reported: str, event_type: str
) -> None:
    webhook = (await world.endpoint(event_type)).view.endpoint
    await world.report(world.milestone(await world.project(before), reported))
    assert [(each.webhook_id, each.event_type) for each in await world.deliveries()] == [
        (webhook.id, event_type)
    ]


@dataclass
class CountingStore:
    store: Store
    transactions: int = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self.store, name)

    async def write(self, action: Action[T], priority: Priority) -> T:
        self.transactions += 1
        return await self.store.write(action, priority)


async def test_a_batch_of_five_hundred_is_one_transaction_for_all_accounts(
    world: World,
) -> None:
    stranger = await world.new_owner()
    await world.endpoint()
    await world.endpoint(caller=stranger)
    mine, theirs = await world.project(), await world.project(caller=stranger)
    names = ["completed", "exporting"] * 125
    batch = [world.milestone(each, name) for name in names for each in (mine, theirs)]
    counting = CountingStore(world.store)
    watched = replace(world, store=counting).reassembled(RULES)  # type: ignore[arg-type]  # forwards
    answers = await watched.report(*batch)
    assert counting.transactions == 1
    assert [answer.report_id for answer in answers] == [each.report_id for each in batch]
    assert all(answer.accepted for answer in answers)
    assert [answer.notified for answer in answers] == [True, True, False, False] * 125
    assert len(await world.deliveries()) == len(await world.deliveries(stranger)) == 125
    dump = await world.dump()
    assert {name: len(dump[name]) for name in ("events", "deliveries", "queue", "reports")} == {
        "events": 250,
        "deliveries": 0,
        "queue": 250,
        "reports": 500,
    }


async def test_answers_come_in_the_order_of_the_reports(world: World) -> None:
    stranger = await world.new_owner()
    known, unknown = await world.project(), replace(await world.project(), id=world.account.id)
    theirs = await world.project(ProjectStatus.QUEUED, caller=stranger)
    answers = await world.report(
        world.milestone(theirs, "processing", report_id="a"),
        world.milestone(unknown, report_id="b"),
        world.milestone(known, report_id="c"),
        world.milestone(theirs, "completed", report_id="d"),
    )
    assert [(each.report_id, each.accepted, each.reason) for each in answers] == [
        ("a", True, SilenceReason.NO_EVENT_FOR_STATUS),
        ("b", False, SilenceReason.PROJECT_NOT_FOUND),
        ("c", True, SilenceReason.NOT_SUBSCRIBED),
        ("d", False, SilenceReason.ILLEGAL_TRANSITION),
    ]


async def test_the_milestones_of_a_batch_build_on_one_another(world: World) -> None:
    await world.endpoint("project.completed", "project.ready")
    project = await world.project(ProjectStatus.QUEUED)
    names = ["processing", "ready", "exporting", "failed", "exporting", "completed"]
    answers = await world.report(*(world.milestone(project, name) for name in names))
    assert all(answer.accepted for answer in answers)
    assert [answer.notified for answer in answers] == [False, True, False, False, False, True]
    assert [event.type for event in await world.events()] == [
        "project.completed",
        "project.failed",
        "project.ready",
    ]
    assert (await world.stored(project)).status is ProjectStatus.COMPLETED


async def test_a_repeated_report_gets_the_first_answer_and_changes_nothing(world: World) -> None:
    await world.endpoint()
    project = await world.project()
    report = world.milestone(project)
    first = await world.report(report)
    before = await world.dump()
    world.clock.advance(hours=1)
    assert await world.report(report) == first
    assert await world.dump() == before


async def test_a_report_that_stands_twice_in_a_batch_is_booked_once(world: World) -> None:
    await world.endpoint()
    report = world.milestone(await world.project())
    one, other = await world.report(report, report)
    assert one == other
    assert len(await world.events()) == len(await world.deliveries()) == 1


async def test_two_accounts_may_use_the_same_report_id(world: World) -> None:
    stranger = await world.new_owner()
    mine, theirs = await world.project(), await world.project(caller=stranger)
    one, other = await world.report(
        world.milestone(mine, report_id="same"), world.milestone(theirs, report_id="same")
    )
    assert one.event_id != other.event_id
    assert one.accepted
    assert other.accepted


async def test_an_illegal_move_stores_nothing(world: World) -> None:
    await world.endpoint()
    project = await world.project(ProjectStatus.QUEUED)
    before = await world.dump()
    [answer] = await world.report(world.milestone(project, report_id="early"))
    assert answer == ReportAnswer("early", False, None, False, SilenceReason.ILLEGAL_TRANSITION)
    assert await world.dump() == before


async def test_a_refused_report_is_decided_anew_when_its_time_has_come(world: World) -> None:
    project = await world.project(ProjectStatus.PROCESSING)
    early = world.milestone(project)
    assert [answer.accepted for answer in await world.report(early)] == [False]
    await world.report(world.milestone(project, "exporting"))
    assert [answer.accepted for answer in await world.report(early)] == [True]


async def test_an_unknown_project_is_not_found_and_stores_nothing(world: World) -> None:
    nowhere = replace(await world.project(), id=world.account.id)
    before = await world.dump()
    [answer] = await world.report(world.milestone(nowhere, report_id="r"))
    assert answer == ReportAnswer("r", False, None, False, SilenceReason.PROJECT_NOT_FOUND)
    assert await world.dump() == before


async def test_a_project_that_vanishes_meanwhile_is_not_found(world: World) -> None:
    """Whose it was is remembered; what an erasure has removed must still not be written to."""
    project = await world.project()
    [first] = await world.report(world.milestone(project, report_id="q"))
    assert first.accepted
    await world.sql(lambda transaction: transaction.accounts.erase_some(world.account.id, 1_000))
    [answer] = await world.report(world.milestone(project, report_id="r"))
    assert answer == ReportAnswer("r", False, None, False, SilenceReason.PROJECT_NOT_FOUND)


async def test_many_at_once_are_written_in_few_transactions(world: World) -> None:
    await world.endpoint()
    projects = [await world.project() for _ in range(20)]
    counting = CountingStore(world.store)
    watched = replace(world, store=counting).reassembled(RULES)  # type: ignore[arg-type]  # forwards
    answers = await asyncio.gather(
        *(watched.report(world.milestone(each, report_id=str(each.id))) for each in projects)
    )
    assert [answer.report_id for [answer] in answers] == [str(each.id) for each in projects]
    assert {answer.notified for [answer] in answers} == {True}
    assert counting.transactions < len(projects) / 2
    assert len(await world.deliveries()) == 20


async def test_when_the_deliveries_cannot_be_stored_nothing_is(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.endpoint()
    report = world.milestone(await world.project())
    before = await world.dump()

    async def broken(*_: object) -> None:
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(DeliveryRecords, "add", broken)
        with pytest.raises(Exception, match="disk full"):
            await world.report(report)
    assert await world.dump() == before
    assert [answer.notified for answer in await world.report(report)] == [True]


async def test_only_a_service_key_may_report(world: World) -> None:
    project = await world.project()
    before = await world.dump()
    with pytest.raises(MissingScope):
        await world.service.milestones.report(world.owner, [world.milestone(project)])
    assert await world.dump() == before
