"""Several processes report at once: whoever comes first, one legal history is left."""

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
from tests.application.racing.rivals import LIMIT, Rivals
from tests.application.world import World
from tests.support import core_statements

WRITTEN = {
    table.name: table for table in (tables.projects, tables.events, tables.queue, tables.reports)
}
STATUSES = ("project.completed", "project.failed", "project.cancelled")


async def of_event(world: World, event_id: UUID | None) -> list[Delivery]:
    return [each for each in await world.deliveries() if each.event_id == event_id]


async def test_of_several_endings_of_a_project_one_is_booked(rivals: Rivals) -> None:
    world = rivals.world
    await world.endpoint(*STATUSES)
    for project in await rivals.projects(rivals.rounds):
        endings = ("completed", "failed", "cancelled", "completed")
        answers = await rivals.race(
            *(
                rivals.each(place).report(world.milestone(project, ending))
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
        assert (await world.stored(project)).status == ending
        [event] = [each for each in await world.events() if each.project_id == project.id]
        [delivery] = await world.deliveries(project_id=project.id)
        assert (event.id, event.type) == (booked.event_id, f"project.{ending}")
        assert (delivery.event_id, delivery.status) == (event.id, DeliveryStatus.PENDING)


async def test_the_reports_of_many_leave_a_history_that_one_alone_could_have_made(
    rivals: Rivals,
) -> None:
    world = rivals.world
    await world.endpoint("project.completed")
    [project] = await rivals.projects(1)
    accepted: Counter[str] = Counter()

    async def report_often(reporter: World) -> None:
        for name in ("completed", "exporting") * rivals.rounds:
            [answer] = await reporter.report(world.milestone(project, name))
            accepted[name] += answer.accepted

    await rivals.race(*(report_often(each) for each in rivals.worlds))
    ahead = accepted["completed"] - accepted["exporting"]
    assert {0: ProjectStatus.EXPORTING, 1: ProjectStatus.COMPLETED}[ahead] is (
        await world.stored(project)
    ).status
    assert accepted["completed"] >= rivals.rounds
    events, deliveries = await world.events(), await world.deliveries()
    assert len(events) == len(deliveries) == accepted["completed"]
    assert {each.event_id for each in deliveries} == {each.id for each in events}
    assert await world.queued() == {each.id for each in deliveries}


async def test_a_report_that_comes_several_times_at_once_is_booked_once(rivals: Rivals) -> None:
    world = rivals.world
    await world.endpoint()
    for project in await rivals.projects(rivals.rounds):
        report = world.milestone(project)
        answers = await rivals.race(*(rivals.each(place).report(report) for place in range(6)))
        [first] = answers[0]
        assert answers == [[first]] * 6
        assert first == ReportAnswer(report.report_id, True, first.event_id, True, None)
        assert len(await of_event(world, first.event_id)) == 1
    assert len(await world.events()) == len((await world.dump())["reports"]) == rivals.rounds


async def test_a_report_id_that_names_two_projects_at_once_is_booked_once(rivals: Rivals) -> None:
    """Neither waits for the other's project, so the second finds out only when it writes."""
    world = rivals.world
    for place in range(rivals.rounds):
        one, other = await rivals.projects(2)
        [[answer], [same]] = await rivals.race(
            rivals.each(0).report(world.milestone(one, report_id=f"same {place}")),
            rivals.each(1).report(world.milestone(other, report_id=f"same {place}")),
        )
        assert sorted((answer.accepted, same.accepted)) == [False, True]
        [refused] = [each for each in (answer, same) if not each.accepted]
        assert refused.reason is SilenceReason.REPORT_ID_REUSED
    assert len(await world.events()) == rivals.rounds


async def two_hundred_and_fifty_each(rivals: Rivals) -> list[list[Project]]:
    stranger = await rivals.world.new_owner()
    for caller in (rivals.world.owner, stranger):
        await rivals.world.endpoint(caller=caller)
    return [await rivals.projects(250), await rivals.projects(250, stranger)]


async def test_a_batch_of_five_hundred_has_one_transaction_an_account_on_postgresql(
    postgres_rivals: Rivals,
) -> None:
    world = postgres_rivals.world
    mine, theirs = await two_hundred_and_fifty_each(postgres_rivals)
    answers = await world.report(
        *(world.milestone(each) for pair in zip(mine, theirs, strict=True) for each in pair)
    )
    assert [answer.notified for answer in answers] == [True] * 500
    found = await world.sql(writers)
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
    return await core_statements.all_rows(transaction._session, sa.union_all(*counts))


def _owner(table: sa.Table) -> sa.ColumnElement[int]:
    """By number."""
    if "account" in table.c:
        return table.c.account
    accounts = tables.accounts
    number = sa.select(accounts.c.number).where(accounts.c.id == table.c.account_id)
    return number.correlate(table).scalar_subquery()


async def test_a_batch_of_five_hundred_is_one_change_of_both_accounts_on_sqlite(
    sqlite_rivals: Rivals,
) -> None:
    world = sqlite_rivals.world
    mine, theirs = await two_hundred_and_fifty_each(sqlite_rivals)
    assert isinstance(world.store, SqliteStore)
    assert world.store._writer is not None
    driver = world.store._writer
    heard: list[str] = []
    driver.set_trace_callback(heard.append)
    answers = await world.report(
        *(world.milestone(each) for pair in zip(mine, theirs, strict=True) for each in pair)
    )
    driver.set_trace_callback(None)
    assert [answer.notified for answer in answers] == [True] * 500
    words = ("BEGIN", "SAVEPOINT", "RELEASE", "COMMIT", "ROLLBACK")
    bounds = [each for each in heard if each.startswith(words)]
    assert bounds == ["BEGIN IMMEDIATE", "COMMIT"]


async def test_batches_that_overlap_in_opposite_order_all_come_through(rivals: Rivals) -> None:
    world = rivals.world
    await world.endpoint()
    for _ in range(rivals.rounds):
        projects = await rivals.projects(30)
        batches = [projects, projects[::-1], projects[10:], projects[20::-1]]
        answers = await rivals.race(
            *(
                rivals.each(place).report(*(world.milestone(each) for each in batch))
                for place, batch in enumerate(batches)
            )
        )
        accepted = [answer.event_id for each in answers for answer in each if answer.accepted]
        assert len(set(accepted)) == len(accepted) == len(projects)
    assert len(await world.deliveries()) == 30 * rivals.rounds


async def test_batches_with_the_same_report_ids_in_opposite_order_are_booked_once(
    rivals: Rivals,
) -> None:
    """They share no project; on PostgreSQL each waits for what the other has written."""
    world = rivals.world
    names = [f"report {place}" for place in range(40)]
    mine, theirs = await rivals.projects(40), await rivals.projects(40)
    one, other = await rivals.race(
        rivals.each(0).report(
            *(world.milestone(each, report_id=name) for each, name in zip(mine, names, strict=True))
        ),
        rivals.each(1).report(
            *(
                world.milestone(each, report_id=name)
                for each, name in zip(theirs, names[::-1], strict=True)
            )
        ),
    )
    for answer, its_rival in zip(one, other[::-1], strict=True):
        assert sorted((answer.accepted, its_rival.accepted)) == [False, True]
    reasons = {each.reason for each in (*one, *other) if not each.accepted}
    assert reasons == {SilenceReason.REPORT_ID_REUSED}
    assert len(await world.events()) == 40


async def test_a_project_that_somebody_holds_does_not_hold_up_another(
    postgres_rivals: Rivals,
) -> None:
    """On PostgreSQL, where projects can be held one by one."""
    rivals, world = postgres_rivals, postgres_rivals.world
    stranger = await world.new_owner()
    [mine, mine_too] = await rivals.projects(2)
    [theirs, theirs_too] = await rivals.projects(2, stranger)
    async with asyncio.TaskGroup() as group, rivals.each(1).store.transaction() as holder:
        await holder.projects.lock([(mine.account_id, mine.id)])
        waiting = [group.create_task(world.report(world.milestone(mine), world.milestone(theirs)))]
        async with asyncio.timeout(LIMIT):
            while (await world.stored(theirs)).status is not ProjectStatus.COMPLETED:
                await asyncio.wait(waiting, timeout=0.01)
            [[first], [second]] = await asyncio.gather(
                world.report(world.milestone(mine_too)), world.report(world.milestone(theirs_too))
            )
        assert first.accepted
        assert second.accepted
        assert not any(each.done() for each in waiting)
    assert [answer.accepted for each in waiting for answer in each.result()] == [True, True]
