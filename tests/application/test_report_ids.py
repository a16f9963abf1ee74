"""A report id stands for one content: the same again gets the first answer, another is refused."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa

from cuepost.adapters.storage.tables import reports
from cuepost.adapters.storage.transaction import RecordsTransaction
from cuepost.application.milestone_book import Milestone
from cuepost.application.report_digest import digest_of
from cuepost.domain.artifact import Artifact
from cuepost.domain.event import SilenceReason
from cuepost.domain.project import ProcessingError, ProjectStatus, Stage
from cuepost.ports.records import ReportAnswer
from cuepost.testing import START
from tests.application.world import World
from tests.support import core_statements

VIDEO = Artifact("video", "trailer.mp4", "a/1.mp4", "video/mp4", 1_000)
CAPTIONS = Artifact("captions", "trailer.vtt", "a/1.vtt", "text/vtt", 10)
PROJECT = UUID(int=7)


def reused(report: Milestone) -> ReportAnswer:
    return ReportAnswer(report.report_id, False, None, False, SilenceReason.REPORT_ID_REUSED)


async def test_other_content_is_refused_and_leaves_the_first_answer_as_it_is(world: World) -> None:
    await world.endpoint()
    report = world.milestone(await world.project(), artifacts=(VIDEO,))
    elsewhere = replace(report, project_id=(await world.project()).id)
    first = await world.report(report)
    before = await world.dump()
    for other in (elsewhere, replace(report, status=ProjectStatus.EXPORTING, artifacts=None)):
        assert await world.report(other) == [reused(report)]
    assert await world.report(report) == first
    assert await world.dump() == before


async def test_inside_a_batch_the_first_accepted_content_has_the_id(world: World) -> None:
    one, other = await world.project(ProjectStatus.PROCESSING), await world.project()
    early = world.milestone(one, report_id="same")
    accepted = world.milestone(other, report_id="same")
    late = world.milestone(other, "exporting", report_id="same")
    answers = await world.report(early, accepted, late, accepted, early)
    assert [(each.accepted, each.reason) for each in answers] == [
        (False, SilenceReason.ILLEGAL_TRANSITION),
        (True, SilenceReason.NOT_SUBSCRIBED),
        (False, SilenceReason.REPORT_ID_REUSED),
        (True, SilenceReason.NOT_SUBSCRIBED),
        (False, SilenceReason.ILLEGAL_TRANSITION),
    ]
    assert len(await world.events()) == 1


async def test_calls_that_are_written_together_are_told_apart(world: World) -> None:
    """While the first is written the others gather, and are then written in one transaction."""
    projects = [await world.project() for _ in range(6)]
    answers = await asyncio.gather(
        *(world.report(world.milestone(each, report_id="same")) for each in projects)
    )
    accepted = [answer for [answer] in answers if answer.accepted]
    assert len(accepted) == len(await world.events()) == 1
    assert {answer.reason for [answer] in answers if not answer.accepted} == {
        SilenceReason.REPORT_ID_REUSED
    }


async def test_a_report_from_before_digests_gets_its_first_answer(world: World) -> None:
    await world.endpoint()
    report = world.milestone(await world.project())
    first = await world.report(report)

    async def forget(transaction: RecordsTransaction) -> None:
        await core_statements.run(transaction._session, sa.update(reports).values(digest=None))

    await world.sql(forget)
    assert await world.report(report) == first
    assert await world.report(replace(report, status=ProjectStatus.EXPORTING)) == first


FAILED = Milestone(
    "r",
    project_id=PROJECT,
    status=ProjectStatus.FAILED,
    stage=Stage.EXPORT,
    error=ProcessingError("a", "b"),
    occurred_at=START,
)
COMPLETED = Milestone("r", PROJECT, ProjectStatus.COMPLETED, artifacts=(VIDEO, CAPTIONS))


@pytest.mark.parametrize(
    ("report", "changed"),
    [
        (FAILED, {"report_id": "s"}),
        (FAILED, {"error": ProcessingError("a", "b")}),
        (FAILED, {"occurred_at": START + timedelta(microseconds=1)}),
        (COMPLETED, {"stage": Stage.EXPORT}),
    ],
)
def test_the_same_meaning_has_the_same_digest(report: Milestone, changed: dict[str, Any]) -> None:
    assert digest_of(replace(report, **changed)) == digest_of(report)


def test_what_an_event_cuts_is_no_part_of_the_digest() -> None:
    long = [replace(FAILED, error=ProcessingError("a", "x" * length)) for length in (299, 300, 301)]
    one, two, three = map(digest_of, long)
    assert one != two == three


def test_whatever_means_something_else_has_another_digest() -> None:
    different = [
        FAILED,
        replace(FAILED, project_id=UUID(int=8)),
        replace(FAILED, status=ProjectStatus.CANCELLED, error=None),
        replace(FAILED, stage=Stage.PROCESSING),
        replace(FAILED, stage=None),
        replace(FAILED, error=None),
        replace(FAILED, error=ProcessingError("ab", "")),
        replace(FAILED, error=ProcessingError("a", "")),
        replace(FAILED, occurred_at=None),
        replace(FAILED, occurred_at=START + timedelta(milliseconds=1)),
        COMPLETED,
        replace(COMPLETED, artifacts=None),
        replace(COMPLETED, artifacts=()),
        replace(COMPLETED, artifacts=(VIDEO,)),
        replace(COMPLETED, artifacts=(CAPTIONS, VIDEO)),
        *(
            replace(COMPLETED, artifacts=(other, CAPTIONS))
            for other in (
                replace(VIDEO, kind="other"),
                replace(VIDEO, name="other"),
                replace(VIDEO, key="other"),
                replace(VIDEO, content_type="other"),
                replace(VIDEO, size_bytes=1_001),
            )
        ),
    ]
    assert len({digest_of(each) for each in different}) == len(different)


async def test_reports_of_a_project_that_does_not_exist_are_told_apart(world: World) -> None:
    gone = replace(await world.project(), id=world.ids(world.clock.now()))
    answers = await world.report(
        world.milestone(gone, report_id="one"), world.milestone(gone, report_id="other")
    )
    assert [(each.report_id, each.reason) for each in answers] == [
        ("one", SilenceReason.PROJECT_NOT_FOUND),
        ("other", SilenceReason.PROJECT_NOT_FOUND),
    ]
