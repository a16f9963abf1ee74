"""Projects: the moves between their statuses, their stages, their access window and their end."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from cuepost.domain.errors import (
    IllegalTransition,
    Invalid,
    ProjectAccessExpired,
    ProjectDeleted,
    ResultNotReady,
)
from cuepost.domain.project import (
    Origin,
    Project,
    ProjectKind,
    ProjectStatus,
    Stage,
    access_of_new,
)
from cuepost.testing import START, Factory, SequentialIds, VirtualClock

# From the contract, by hand; a row is where the project is, a column where it is to go.
GRID = """
            queued  processing  ready  exporting  completed  failed  cancelled
queued      -       yes         -      -          -          yes     yes
processing  -       -           yes    yes        -          yes     yes
ready       -       -           -      yes        -          -       yes
exporting   -       -           -      -          yes        yes     yes
completed   -       -           -      yes        -          -       -
failed      -       yes         -      yes        -          -       -
cancelled   -       yes         -      yes        -          -       -
"""
COLUMNS, *ROWS = (line.split() for line in GRID.strip().splitlines())
PAIRS = [
    (ProjectStatus(row[0]), ProjectStatus(column), mark == "yes")
    for row in ROWS
    for column, mark in zip(COLUMNS, row[1:], strict=True)
]
STAGES = {
    "queued": "processing",
    "processing": "processing",
    "ready": "processing",
    "exporting": "export",
    "completed": "export",
}
LATER = START + timedelta(minutes=1)


def project(**changed: object) -> Project:
    ids = SequentialIds()
    return Factory(ids, VirtualClock()).project(ids(START), **changed)


def test_what_is_stored_and_told_is_called_as_it_always_was() -> None:
    assert list(ProjectKind) == ["video", "transcript"]
    assert list(Origin) == ["app", "api", "mcp"]
    assert list(Stage) == ["processing", "export"]


def test_the_grid_names_all_forty_nine_pairs() -> None:
    assert {pair[:2] for pair in PAIRS} == {(a, b) for a in ProjectStatus for b in ProjectStatus}


@pytest.mark.parametrize(("status", "to", "legal"), PAIRS)
def test_a_project_moves_only_as_the_table_says(
    status: ProjectStatus, to: ProjectStatus, legal: bool
) -> None:
    before = project(status=status, stage=Stage.EXPORT, exported_at=START)
    if legal:
        stage = Stage(STAGES.get(to, "export"))
        moved = before.moved(to, LATER)
        exported_at = LATER if to is ProjectStatus.COMPLETED else START
        assert moved == replace(
            before, status=to, stage=stage, updated_at=LATER, exported_at=exported_at
        )
    else:
        with pytest.raises(IllegalTransition) as refused:
            before.moved(to, LATER)
        assert refused.value.details == {"currentStatus": status}
        assert str(refused.value) == f"A project that is {status} cannot become {to}."


@pytest.mark.parametrize("status", ["failed", "cancelled"])
@pytest.mark.parametrize("stage", Stage)
def test_a_project_ends_in_the_stage_it_was_in(status: str, stage: Stage) -> None:
    moved = project(status=ProjectStatus.PROCESSING, stage=stage).moved(
        ProjectStatus(status), LATER
    )
    assert moved.stage is stage


def test_a_report_may_say_in_which_stage_a_project_failed() -> None:
    before = project(status=ProjectStatus.PROCESSING, stage=Stage.PROCESSING)
    assert before.moved(ProjectStatus.FAILED, LATER, Stage.EXPORT).stage is Stage.EXPORT


@pytest.mark.parametrize("to", [ProjectStatus(each) for each in STAGES if each != "queued"])
def test_a_status_with_a_fixed_stage_has_that_stage_alone(to: ProjectStatus) -> None:
    right = Stage(STAGES[to])
    wrong = next(each for each in Stage if each is not right)
    earlier = next(status for status, after, legal in PAIRS if legal and after is to)
    assert project(status=earlier, stage=wrong).moved(to, LATER, right).stage is right
    assert project(status=earlier, stage=wrong).moved(to, LATER, wrong).stage is right


def test_a_deleted_project_keeps_nothing_that_a_person_wrote() -> None:
    before = project(name="Wedding of Ann and Bo")
    gone = before.deleted(LATER)
    assert gone == replace(before, name="", deleted_at=LATER, updated_at=LATER)
    with pytest.raises(ProjectDeleted):
        gone.require_present()


def test_a_project_that_is_there_is_given_back() -> None:
    present = project()
    assert present.require_present() is present


@pytest.mark.parametrize(
    ("window", "expired"),
    [
        (None, False),
        (timedelta(milliseconds=1), False),
        (timedelta(0), True),
        (timedelta(milliseconds=-1), True),
    ],
)
def test_an_access_window_ends_at_its_instant(window: timedelta | None, expired: bool) -> None:
    end = None if window is None else START + window
    assert project(access_expires_at=end).has_expired(START) is expired


@pytest.mark.parametrize("status", ProjectStatus)
def test_a_project_that_was_exported_has_a_result_whatever_it_does_now(
    status: ProjectStatus,
) -> None:
    assert project(status=status, exported_at=START).require_result(LATER) == START


@pytest.mark.parametrize("status", [each for each in ProjectStatus if each != "completed"])
def test_a_project_that_was_never_exported_has_no_result_yet(status: ProjectStatus) -> None:
    with pytest.raises(ResultNotReady) as refused:
        project(status=status).require_result(START)
    assert refused.value.details == {"projectStatus": status}
    assert str(refused.value) == (f"The project is {status}; no export of it has completed yet.")


def test_the_result_of_an_expired_project_is_gone() -> None:
    ended = project(status=ProjectStatus.COMPLETED, access_expires_at=START)
    with pytest.raises(ProjectAccessExpired):
        ended.require_result(START)


def test_the_result_of_a_deleted_project_is_gone() -> None:
    with pytest.raises(ProjectDeleted):
        project(status=ProjectStatus.COMPLETED, deleted_at=START).require_result(START)


def test_what_follows_from_a_project_ends_with_its_access_window() -> None:
    endless = project()
    window = project(access_expires_at=LATER)
    assert endless.access_until(LATER) == LATER
    assert window.access_until(LATER + timedelta(seconds=1)) == LATER
    assert window.access_until(START) == START


@pytest.mark.parametrize("until", [None, START + timedelta(milliseconds=1)])
def test_a_new_project_has_an_access_window_that_is_open(until: datetime | None) -> None:
    assert access_of_new(until, START) == until


@pytest.mark.parametrize("until", [START, START - timedelta(days=400)])
def test_a_new_project_cannot_have_an_access_window_that_has_ended(until: datetime) -> None:
    with pytest.raises(Invalid) as refused:
        access_of_new(until, START)
    [error] = refused.value.errors
    assert (error.field, error.code) == ("accessExpiresAt", "expiry_in_the_past")
