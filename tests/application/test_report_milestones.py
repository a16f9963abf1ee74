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
from tests.application.harness import RULES, Harness

T = TypeVar("T")


async def test_an_accepted_milestone_moves_the_project_and_queues_its_event(
    harness: Harness,
) -> None:
    endpoint = (await harness.endpoint()).view.endpoint
    project = await harness.project(stage=Stage.EXPORT)
    harness.clock.advance(1)
    now = harness.clock.now()
    [answer] = await harness.report(harness.milestone(project, report_id="r1"))
    assert answer.event_id is not None
    assert answer == ReportAnswer("r1", True, answer.event_id, True, None)
    assert await harness.stored(project) == replace(
        project, status=ProjectStatus.COMPLETED, updated_at=now, exported_at=now
    )
    [event], [delivery] = await harness.events(), await harness.deliveries()
    assert event == Event(
        account_id=harness.account.id,
        id=answer.event_id,
        type="project.completed",
        created_at=now,
        project_id=project.id,
        occurred_at=now,
        body=event.body,
        reason=None,
    )
    assert delivery == Delivery(
        account_id=harness.account.id,
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
    assert await harness.queued() == {delivery.id}


async def test_the_stored_body_is_the_frozen_event_with_the_result_address(
    harness: Harness,
) -> None:
    project = await harness.project()
    [answer] = await harness.report(harness.milestone(project))
    [event] = await harness.events()
    assert (
        event.body
        == (
            f'{{"id":"{answer.event_id}","type":"project.completed",'
            '"createdAt":"2026-01-02T03:04:05.678Z",'
            f'"data":{{"projectId":"{project.id}","status":"completed","stage":"export",'
            f'"resultUrl":"https://cuepost.example.com/v1/projects/{project.id}/result"}}}}'
        ).encode()
    )


async def test_when_it_happened_is_kept_beside_when_it_was_accepted(harness: Harness) -> None:
    earlier = harness.clock.now() - timedelta(minutes=5)
    await harness.report(harness.milestone(await harness.project(), occurred_at=earlier))
    [event] = await harness.events()
    assert (event.occurred_at, event.created_at) == (earlier, harness.clock.now())
    assert json.loads(event.body)["createdAt"] == "2026-01-02T03:04:05.678Z"


async def test_each_subscribed_endpoint_of_the_account_gets_its_own_delivery(
    harness: Harness,
) -> None:
    everything = await harness.endpoint("project.completed", "project.ready")
    defaults = await harness.endpoint()
    await harness.endpoint("project.ready")
    stranger = await harness.new_owner()
    await harness.endpoint(caller=stranger)
    await harness.report(harness.milestone(await harness.project()))
    made = await harness.deliveries()
    assert {each.webhook_id for each in made} == {
        everything.view.endpoint.id,
        defaults.view.endpoint.id,
    }
    assert len({each.event_id for each in made}) == 1
    assert await harness.deliveries(stranger) == []


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
    harness: Harness, before: ProjectStatus, reported: str, event_type: str
) -> None:
    webhook = (await harness.endpoint(event_type)).view.endpoint
    await harness.report(harness.milestone(await harness.project(before), reported))
    assert [(each.webhook_id, each.event_type) for each in await harness.deliveries()] == [
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
    harness: Harness,
) -> None:
    stranger = await harness.new_owner()
    await harness.endpoint()
    await harness.endpoint(caller=stranger)
    mine, theirs = await harness.project(), await harness.project(caller=stranger)
    names = ["completed", "exporting"] * 125
    batch = [harness.milestone(each, name) for name in names for each in (mine, theirs)]
    counting = CountingStore(harness.store)
    watched = replace(harness, store=counting).reassembled(RULES)  # type: ignore[arg-type]  # forwards
    answers = await watched.report(*batch)
    assert counting.transactions == 1
    assert [answer.report_id for answer in answers] == [each.report_id for each in batch]
    assert all(answer.accepted for answer in answers)
    assert [answer.notified for answer in answers] == [True, True, False, False] * 125
    assert len(await harness.deliveries()) == len(await harness.deliveries(stranger)) == 125
    dump = await harness.dump()
    assert {name: len(dump[name]) for name in ("events", "deliveries", "queue", "reports")} == {
        "events": 250,
        "deliveries": 0,
        "queue": 250,
        "reports": 500,
    }


async def test_answers_come_in_the_order_of_the_reports(harness: Harness) -> None:
    stranger = await harness.new_owner()
    known, unknown = (
        await harness.project(),
        replace(await harness.project(), id=harness.account.id),
    )
    theirs = await harness.project(ProjectStatus.QUEUED, caller=stranger)
    answers = await harness.report(
        harness.milestone(theirs, "processing", report_id="a"),
        harness.milestone(unknown, report_id="b"),
        harness.milestone(known, report_id="c"),
        harness.milestone(theirs, "completed", report_id="d"),
    )
    assert [(each.report_id, each.accepted, each.reason) for each in answers] == [
        ("a", True, SilenceReason.NO_EVENT_FOR_STATUS),
        ("b", False, SilenceReason.PROJECT_NOT_FOUND),
        ("c", True, SilenceReason.NOT_SUBSCRIBED),
        ("d", False, SilenceReason.ILLEGAL_TRANSITION),
    ]


async def test_the_milestones_of_a_batch_build_on_one_another(harness: Harness) -> None:
    await harness.endpoint("project.completed", "project.ready")
    project = await harness.project(ProjectStatus.QUEUED)
    names = ["processing", "ready", "exporting", "failed", "exporting", "completed"]
    answers = await harness.report(*(harness.milestone(project, name) for name in names))
    assert all(answer.accepted for answer in answers)
    assert [answer.notified for answer in answers] == [False, True, False, False, False, True]
    assert [event.type for event in await harness.events()] == [
        "project.completed",
        "project.failed",
        "project.ready",
    ]
    assert (await harness.stored(project)).status is ProjectStatus.COMPLETED


async def test_a_repeated_report_gets_the_first_answer_and_changes_nothing(
    harness: Harness,
) -> None:
    await harness.endpoint()
    project = await harness.project()
    report = harness.milestone(project)
    first = await harness.report(report)
    before = await harness.dump()
    harness.clock.advance(hours=1)
    assert await harness.report(report) == first
    assert await harness.dump() == before


async def test_a_report_that_stands_twice_in_a_batch_is_booked_once(harness: Harness) -> None:
    await harness.endpoint()
    report = harness.milestone(await harness.project())
    one, other = await harness.report(report, report)
    assert one == other
    assert len(await harness.events()) == len(await harness.deliveries()) == 1


async def test_two_accounts_may_use_the_same_report_id(harness: Harness) -> None:
    stranger = await harness.new_owner()
    mine, theirs = await harness.project(), await harness.project(caller=stranger)
    one, other = await harness.report(
        harness.milestone(mine, report_id="same"), harness.milestone(theirs, report_id="same")
    )
    assert one.event_id != other.event_id
    assert one.accepted
    assert other.accepted


async def test_an_illegal_move_stores_nothing(harness: Harness) -> None:
    await harness.endpoint()
    project = await harness.project(ProjectStatus.QUEUED)
    before = await harness.dump()
    [answer] = await harness.report(harness.milestone(project, report_id="early"))
    assert answer == ReportAnswer("early", False, None, False, SilenceReason.ILLEGAL_TRANSITION)
    assert await harness.dump() == before


async def test_a_refused_report_is_decided_again_when_its_time_has_come(harness: Harness) -> None:
    project = await harness.project(ProjectStatus.PROCESSING)
    early = harness.milestone(project)
    assert [answer.accepted for answer in await harness.report(early)] == [False]
    await harness.report(harness.milestone(project, "exporting"))
    assert [answer.accepted for answer in await harness.report(early)] == [True]


async def test_an_unknown_project_is_not_found_and_stores_nothing(harness: Harness) -> None:
    nowhere = replace(await harness.project(), id=harness.account.id)
    before = await harness.dump()
    [answer] = await harness.report(harness.milestone(nowhere, report_id="r"))
    assert answer == ReportAnswer("r", False, None, False, SilenceReason.PROJECT_NOT_FOUND)
    assert await harness.dump() == before


async def test_a_project_that_vanishes_meanwhile_is_not_found(harness: Harness) -> None:
    """Whose it was is remembered; what an erasure has removed must still not be written to."""
    project = await harness.project()
    [first] = await harness.report(harness.milestone(project, report_id="q"))
    assert first.accepted
    await harness.sql(
        lambda transaction: transaction.accounts.erase_some(harness.account.id, 1_000)
    )
    [answer] = await harness.report(harness.milestone(project, report_id="r"))
    assert answer == ReportAnswer("r", False, None, False, SilenceReason.PROJECT_NOT_FOUND)


async def test_many_at_once_are_written_in_few_transactions(harness: Harness) -> None:
    await harness.endpoint()
    projects = [await harness.project() for _ in range(20)]
    counting = CountingStore(harness.store)
    watched = replace(harness, store=counting).reassembled(RULES)  # type: ignore[arg-type]  # forwards
    answers = await asyncio.gather(
        *(watched.report(harness.milestone(each, report_id=str(each.id))) for each in projects)
    )
    assert [answer.report_id for [answer] in answers] == [str(each.id) for each in projects]
    assert {answer.notified for [answer] in answers} == {True}
    assert counting.transactions < len(projects) / 2
    assert len(await harness.deliveries()) == 20


async def test_when_the_deliveries_cannot_be_stored_nothing_is(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    await harness.endpoint()
    report = harness.milestone(await harness.project())
    before = await harness.dump()

    async def broken(*_: object) -> None:
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(DeliveryRecords, "add", broken)
        with pytest.raises(Exception, match="disk full"):
            await harness.report(report)
    assert await harness.dump() == before
    assert [answer.notified for answer in await harness.report(report)] == [True]


async def test_only_a_service_key_may_report(harness: Harness) -> None:
    project = await harness.project()
    before = await harness.dump()
    with pytest.raises(MissingScope):
        await harness.service.milestones.report(harness.owner, [harness.milestone(project)])
    assert await harness.dump() == before
