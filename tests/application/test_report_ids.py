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
from cuepost.application.milestone_batch import Milestone, digest_of
from cuepost.domain.artifact import Artifact
from cuepost.domain.event import SilenceReason
from cuepost.domain.project import ProcessingError, ProjectStatus, Stage
from cuepost.ports.records import ReportAnswer
from cuepost.testing import START
from tests.application.harness import Harness
from tests.support import core_statements

VIDEO = Artifact("video", "trailer.mp4", "a/1.mp4", "video/mp4", 1_000)
CAPTIONS = Artifact("captions", "trailer.vtt", "a/1.vtt", "text/vtt", 10)
PROJECT = UUID(int=7)


def reused(report: Milestone) -> ReportAnswer:
    return ReportAnswer(report.report_id, False, None, False, SilenceReason.REPORT_ID_REUSED)


async def test_other_content_is_refused_and_leaves_the_first_answer_as_it_is(
    harness: Harness,
) -> None:
    await harness.endpoint()
    report = harness.milestone(await harness.project(), artifacts=(VIDEO,))
    elsewhere = replace(report, project_id=(await harness.project()).id)
    first = await harness.report(report)
    before = await harness.dump()
    for other in (elsewhere, replace(report, status=ProjectStatus.EXPORTING, artifacts=None)):
        assert await harness.report(other) == [reused(report)]
    assert await harness.report(report) == first
    assert await harness.dump() == before


async def test_inside_a_batch_the_first_accepted_content_has_the_id(harness: Harness) -> None:
    one, other = await harness.project(ProjectStatus.PROCESSING), await harness.project()
    early = harness.milestone(one, report_id="same")
    accepted = harness.milestone(other, report_id="same")
    late = harness.milestone(other, "exporting", report_id="same")
    answers = await harness.report(early, accepted, late, accepted, early)
    assert [(each.accepted, each.reason) for each in answers] == [
        (False, SilenceReason.ILLEGAL_TRANSITION),
        (True, SilenceReason.NOT_SUBSCRIBED),
        (False, SilenceReason.REPORT_ID_REUSED),
        (True, SilenceReason.NOT_SUBSCRIBED),
        (False, SilenceReason.ILLEGAL_TRANSITION),
    ]
    assert len(await harness.events()) == 1


async def test_calls_that_are_written_together_are_told_apart(harness: Harness) -> None:
    """While the first is written the others gather, and are then written in one transaction."""
    projects = [await harness.project() for _ in range(6)]
    answers = await asyncio.gather(
        *(harness.report(harness.milestone(each, report_id="same")) for each in projects)
    )
    accepted = [answer for [answer] in answers if answer.accepted]
    assert len(accepted) == len(await harness.events()) == 1
    assert {answer.reason for [answer] in answers if not answer.accepted} == {
        SilenceReason.REPORT_ID_REUSED
    }


async def test_a_report_from_before_digests_gets_its_first_answer(harness: Harness) -> None:
    await harness.endpoint()
    report = harness.milestone(await harness.project())
    first = await harness.report(report)

    async def forget(transaction: RecordsTransaction) -> None:
        await core_statements.run(transaction.session, sa.update(reports).values(digest=None))

    await harness.sql(forget)
    assert await harness.report(report) == first
    assert await harness.report(replace(report, status=ProjectStatus.EXPORTING)) == first


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


async def test_reports_of_a_project_that_does_not_exist_are_told_apart(harness: Harness) -> None:
    gone = replace(await harness.project(), id=harness.ids(harness.clock.now()))
    answers = await harness.report(
        harness.milestone(gone, report_id="one"), harness.milestone(gone, report_id="other")
    )
    assert [(each.report_id, each.reason) for each in answers] == [
        ("one", SilenceReason.PROJECT_NOT_FOUND),
        ("other", SilenceReason.PROJECT_NOT_FOUND),
    ]
