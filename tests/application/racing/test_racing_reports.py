"""Several processes report at once: in any order, one legal history is left."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from cuepost.adapters.storage import tables
from cuepost.adapters.storage.sqlite import SqliteStore
from cuepost.adapters.storage.transaction import RecordsTransaction
from cuepost.domain.delivery import Delivery, DeliveryStatus
from cuepost.domain.event import SilenceReason
from cuepost.domain.project import Project, ProjectStatus
from cuepost.ports.records import ReportAnswer
from tests.application.harness import Harness
from tests.application.racing.instances import LIMIT, Instances
from tests.support import core_statements

WRITTEN = {
    table.name: table for table in (tables.projects, tables.events, tables.queue, tables.reports)
}
STATUSES = ("project.completed", "project.failed", "project.cancelled")


async def of_event(harness: Harness, event_id: UUID | None) -> list[Delivery]:
    return [each for each in await harness.deliveries() if each.event_id == event_id]


async def test_of_several_endings_of_a_project_one_is_booked(instances: Instances) -> None:
    harness = instances.harness
    await harness.endpoint(*STATUSES)
    for project in await instances.projects(instances.rounds):
        endings = ("completed", "failed", "cancelled", "completed")
        answers = await instances.race(
            *(
                instances.each(place).report(harness.milestone(project, ending))
                for place, ending in enumerate(endings)
            )
        )
        [(ending, booked)] = [
            (ending, answer)
            for ending, [answer] in zip(endings, answers, strict=True)
            if answer.accepted
        ]
        refusals = {answer.reason for [answer] in answers if not answer.accepted}
        assert refusals == {SilenceReason.ILLEGAL_TRANSITION}
        assert (await harness.stored(project)).status == ending
        [event] = [each for each in await harness.events() if each.project_id == project.id]
        [delivery] = await harness.deliveries(project_id=project.id)
        assert (event.id, event.type) == (booked.event_id, f"project.{ending}")
        assert (delivery.event_id, delivery.status) == (event.id, DeliveryStatus.PENDING)


async def test_the_reports_of_many_leave_a_history_that_one_alone_could_have_made(
    instances: Instances,
) -> None:
    harness = instances.harness
    await harness.endpoint("project.completed")
    [project] = await instances.projects(1)
    accepted: Counter[str] = Counter()

    async def report_often(reporter: Harness) -> None:
        for name in ("completed", "exporting") * instances.rounds:
            [answer] = await reporter.report(harness.milestone(project, name))
            accepted[name] += answer.accepted

    await instances.race(*(report_often(each) for each in instances.harnesses))
    ahead = accepted["completed"] - accepted["exporting"]
    assert {0: ProjectStatus.EXPORTING, 1: ProjectStatus.COMPLETED}[ahead] is (
        await harness.stored(project)
    ).status
    assert accepted["completed"] >= instances.rounds
    events, deliveries = await harness.events(), await harness.deliveries()
    assert len(events) == len(deliveries) == accepted["completed"]
    assert {each.event_id for each in deliveries} == {each.id for each in events}
    assert await harness.queued() == {each.id for each in deliveries}


async def test_a_report_that_comes_several_times_at_once_is_booked_once(
    instances: Instances,
) -> None:
    harness = instances.harness
    await harness.endpoint()
    for project in await instances.projects(instances.rounds):
        report = harness.milestone(project)
        answers = await instances.race(
            *(instances.each(place).report(report) for place in range(6))
        )
        [first] = answers[0]
        assert answers == [[first]] * 6
        assert first == ReportAnswer(report.report_id, True, first.event_id, True, None)
        assert len(await of_event(harness, first.event_id)) == 1
    assert len(await harness.events()) == len((await harness.dump())["reports"]) == instances.rounds


async def test_a_report_id_that_names_two_projects_at_once_is_booked_once(
    instances: Instances,
) -> None:
    """Neither waits for the other's project, so the second finds out only when it writes."""
    harness = instances.harness
    for place in range(instances.rounds):
        one, other = await instances.projects(2)
        [[answer], [same]] = await instances.race(
            instances.each(0).report(harness.milestone(one, report_id=f"same {place}")),
            instances.each(1).report(harness.milestone(other, report_id=f"same {place}")),
        )
        assert sorted((answer.accepted, same.accepted)) == [False, True]
        [refused] = [each for each in (answer, same) if not each.accepted]
        assert refused.reason is SilenceReason.REPORT_ID_REUSED
    assert len(await harness.events()) == instances.rounds


async def two_hundred_and_fifty_each(instances: Instances) -> list[list[Project]]:
    stranger = await instances.harness.new_owner()
    for caller in (instances.harness.owner, stranger):
        await instances.harness.endpoint(caller=caller)
    return [await instances.projects(250), await instances.projects(250, stranger)]


async def test_a_batch_of_five_hundred_has_one_transaction_an_account_on_postgresql(
    postgres_instances: Instances,
) -> None:
    harness = postgres_instances.harness
    mine, theirs = await two_hundred_and_fifty_each(postgres_instances)
    answers = await harness.report(
        *(harness.milestone(each) for pair in zip(mine, theirs, strict=True) for each in pair)
    )
    assert [answer.notified for answer in answers] == [True] * 500
    found = await harness.sql(writers)
    assert {(row.table, row.total) for row in found} == {(name, 250) for name in WRITTEN}
    assert len({(row.account, row.writer) for row in found}) == 2
    assert len(found) == 2 * len(WRITTEN)


async def writers(transaction: RecordsTransaction) -> Sequence[sa.Row[Any]]:
    """How many rows each transaction wrote of each account, in each table."""
    counts = [
        sa.select(
            sa.literal(name).label("table"),
            _owner(table).label("account"),
            sa.cast(sa.literal_column("xmin"), sa.Text).label("writer"),
            sa.func.count().label("total"),
        )
        .select_from(table)
        .group_by(sa.literal_column("2"), sa.literal_column("3"))
        for name, table in WRITTEN.items()
    ]
    return await core_statements.all_rows(transaction.session, sa.union_all(*counts))


def _owner(table: sa.Table) -> sa.ColumnElement[int]:
    """By number."""
    if "account" in table.c:
        return table.c.account
    accounts = tables.accounts
    number = sa.select(accounts.c.number).where(accounts.c.id == table.c.account_id)
    return number.correlate(table).scalar_subquery()


async def test_a_batch_of_five_hundred_is_one_change_of_both_accounts_on_sqlite(
    sqlite_instances: Instances,
) -> None:
    harness = sqlite_instances.harness
    mine, theirs = await two_hundred_and_fifty_each(sqlite_instances)
    assert isinstance(harness.store, SqliteStore)
    assert harness.store._writer is not None
    driver = harness.store._writer
    heard: list[str] = []
    driver.set_trace_callback(heard.append)
    answers = await harness.report(
        *(harness.milestone(each) for pair in zip(mine, theirs, strict=True) for each in pair)
    )
    driver.set_trace_callback(None)
    assert [answer.notified for answer in answers] == [True] * 500
    words = ("BEGIN", "SAVEPOINT", "RELEASE", "COMMIT", "ROLLBACK")
    bounds = [each for each in heard if each.startswith(words)]
    assert bounds == ["BEGIN IMMEDIATE", "COMMIT"]


async def test_batches_that_overlap_in_opposite_order_all_come_through(
    instances: Instances,
) -> None:
    harness = instances.harness
    await harness.endpoint()
    for _ in range(instances.rounds):
        projects = await instances.projects(30)
        batches = [projects, projects[::-1], projects[10:], projects[20::-1]]
        answers = await instances.race(
            *(
                instances.each(place).report(*(harness.milestone(each) for each in batch))
                for place, batch in enumerate(batches)
            )
        )
        accepted = [answer.event_id for each in answers for answer in each if answer.accepted]
        assert len(set(accepted)) == len(accepted) == len(projects)
    assert len(await harness.deliveries()) == 30 * instances.rounds


async def test_batches_with_the_same_report_ids_in_opposite_order_are_booked_once(
    instances: Instances,
) -> None:
    """They share no project; on PostgreSQL each waits for what the other has written."""
    harness = instances.harness
    names = [f"report {place}" for place in range(40)]
    mine, theirs = await instances.projects(40), await instances.projects(40)
    one, other = await instances.race(
        instances.each(0).report(
            *(
                harness.milestone(each, report_id=name)
                for each, name in zip(mine, names, strict=True)
            )
        ),
        instances.each(1).report(
            *(
                harness.milestone(each, report_id=name)
                for each, name in zip(theirs, names[::-1], strict=True)
            )
        ),
    )
    for answer, other_instance in zip(one, other[::-1], strict=True):
        assert sorted((answer.accepted, other_instance.accepted)) == [False, True]
    reasons = {each.reason for each in (*one, *other) if not each.accepted}
    assert reasons == {SilenceReason.REPORT_ID_REUSED}
    assert len(await harness.events()) == 40


async def test_a_project_that_another_holds_does_not_hold_up_another(
    postgres_instances: Instances,
) -> None:
    """On PostgreSQL, where projects can be held one by one."""
    instances, harness = postgres_instances, postgres_instances.harness
    stranger = await harness.new_owner()
    [mine, mine_too] = await instances.projects(2)
    [theirs, theirs_too] = await instances.projects(2, stranger)
    async with asyncio.TaskGroup() as group, instances.each(1).store.transaction() as holder:
        await holder.projects.lock([(mine.account_id, mine.id)])
        waiting = [
            group.create_task(harness.report(harness.milestone(mine), harness.milestone(theirs)))
        ]
        async with asyncio.timeout(LIMIT):
            while (await harness.stored(theirs)).status is not ProjectStatus.COMPLETED:
                await asyncio.wait(waiting, timeout=0.01)
            [[first], [second]] = await asyncio.gather(
                harness.report(harness.milestone(mine_too)),
                harness.report(harness.milestone(theirs_too)),
            )
        assert first.accepted
        assert second.accepted
        assert not any(each.done() for each in waiting)
    assert [answer.accepted for each in waiting for answer in each.result()] == [True, True]
