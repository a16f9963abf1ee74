"""Milestones by hand: only for projects of the pages, along the ordinary way, with real events."""

from dataclasses import replace

import pytest

from cuepost.application.rehearse import goals_of, path_to
from cuepost.domain.errors import (
    IllegalTransition,
    MissingScope,
    NotFound,
    ProjectNotRehearsable,
)
from cuepost.domain.project import MOVES, Origin, ProjectStatus
from tests.application.harness import Harness

_S = ProjectStatus


async def test_every_step_on_the_way_is_booked_with_its_event(harness: Harness) -> None:
    await harness.endpoint("project.ready", "project.completed")
    project = await harness.project(_S.QUEUED, origin=Origin.APP)
    moved = await harness.do(
        harness.service.rehearse.advance, harness.owner, project.id, _S.COMPLETED
    )
    assert moved == await harness.stored(project)
    assert moved.status is _S.COMPLETED
    assert {event.type for event in await harness.events()} == {
        "project.ready",
        "project.completed",
    }
    assert len(await harness.deliveries()) == 2


async def test_a_failure_by_hand_says_that_it_is_one(harness: Harness) -> None:
    project = await harness.project(_S.PROCESSING, origin=Origin.APP)
    await harness.do(harness.service.rehearse.advance, harness.owner, project.id, _S.FAILED)
    [event] = await harness.events()
    assert b'"code":"rehearsal"' in event.body


@pytest.mark.parametrize("origin", [Origin.API, Origin.MCP])
async def test_projects_from_elsewhere_are_left_to_the_pipeline(
    harness: Harness, origin: Origin
) -> None:
    project = await harness.project(_S.QUEUED, origin=origin)
    assert goals_of(project) == ()
    with pytest.raises(ProjectNotRehearsable):
        await harness.do(harness.service.rehearse.advance, harness.owner, project.id, _S.COMPLETED)
    assert await harness.stored(project) == project


async def test_what_the_pipeline_may_not_do_no_caller_may(harness: Harness) -> None:
    project = await harness.project(_S.COMPLETED, origin=Origin.APP)
    with pytest.raises(IllegalTransition):
        await harness.do(harness.service.rehearse.advance, harness.owner, project.id, _S.READY)
    assert await harness.stored(project) == project


@pytest.mark.parametrize("status", [_S.COMPLETED, _S.FAILED, _S.CANCELLED])
async def test_a_project_that_has_ended_is_completed_by_hand_through_another_export(
    harness: Harness, status: ProjectStatus
) -> None:
    project = await harness.project(status, origin=Origin.APP)
    assert _S.COMPLETED in goals_of(project)
    harness.clock.advance(1)
    moved = await harness.do(
        harness.service.rehearse.advance, harness.owner, project.id, _S.COMPLETED
    )
    assert (moved.status, moved.exported_at) == (_S.COMPLETED, harness.clock.now())


async def test_strangers_and_weak_keys_move_nothing(harness: Harness) -> None:
    project = await harness.project(_S.QUEUED, origin=Origin.APP)
    advance = harness.service.rehearse.advance
    with pytest.raises(NotFound):
        await harness.do(advance, await harness.new_owner(), project.id, _S.COMPLETED)
    weak = replace(harness.owner, scopes=frozenset())
    with pytest.raises(MissingScope):
        await harness.do(advance, weak, project.id, _S.COMPLETED)


@pytest.mark.parametrize("status", list(_S))
async def test_every_goal_that_is_offered_is_reached_by_legal_moves(
    harness: Harness, status: ProjectStatus
) -> None:
    project = await harness.project(status, origin=Origin.APP)
    for goal in goals_of(project):
        at = status
        for step in path_to(status, goal):
            assert step in MOVES[at]
            at = step
        assert at is goal


async def test_moving_a_project_by_hand_is_in_the_audit_trail(harness: Harness) -> None:
    project = await harness.project(_S.QUEUED, origin=Origin.APP)
    await harness.do(harness.service.rehearse.advance, harness.owner, project.id, _S.READY)
    [entry] = await harness.audit()
    assert (entry.action, entry.subject) == ("project.rehearsed", str(project.id))
    assert entry.details == {"status": "ready"}
