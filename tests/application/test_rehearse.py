"""Milestones by hand: only for projects of the pages, along the ordinary way, with real events."""

from dataclasses import replace

import pytest

from cuepost.application.rehearse import goals_of, way_to
from cuepost.domain.errors import (
    IllegalTransition,
    MissingScope,
    NotFound,
    ProjectNotRehearsable,
)
from cuepost.domain.project import MOVES, Origin, ProjectStatus
from tests.application.world import World

_S = ProjectStatus


async def test_every_step_on_the_way_is_booked_with_its_event(world: World) -> None:
    await world.endpoint("project.ready", "project.completed")
    project = await world.project(_S.QUEUED, origin=Origin.APP)
    moved = await world.do(world.service.rehearse.advance, world.owner, project.id, _S.COMPLETED)
    assert moved == await world.stored(project)
    assert moved.status is _S.COMPLETED
    assert {event.type for event in await world.events()} == {"project.ready", "project.completed"}
    assert len(await world.deliveries()) == 2


async def test_a_failure_by_hand_says_that_it_is_one(world: World) -> None:
    project = await world.project(_S.PROCESSING, origin=Origin.APP)
    await world.do(world.service.rehearse.advance, world.owner, project.id, _S.FAILED)
    [event] = await world.events()
    assert b'"code":"rehearsal"' in event.body


@pytest.mark.parametrize("origin", [Origin.API, Origin.MCP])
async def test_projects_from_elsewhere_are_left_to_the_pipeline(
    world: World, origin: Origin
) -> None:
    project = await world.project(_S.QUEUED, origin=origin)
    assert goals_of(project) == ()
    with pytest.raises(ProjectNotRehearsable):
        await world.do(world.service.rehearse.advance, world.owner, project.id, _S.COMPLETED)
    assert await world.stored(project) == project


async def test_what_the_pipeline_may_not_do_nobody_may(world: World) -> None:
    project = await world.project(_S.COMPLETED, origin=Origin.APP)
    with pytest.raises(IllegalTransition):
        await world.do(world.service.rehearse.advance, world.owner, project.id, _S.READY)
    assert await world.stored(project) == project


@pytest.mark.parametrize("status", [_S.COMPLETED, _S.FAILED, _S.CANCELLED])
async def test_a_project_that_has_ended_is_completed_by_hand_through_another_export(
    world: World, status: ProjectStatus
) -> None:
    project = await world.project(status, origin=Origin.APP)
    assert _S.COMPLETED in goals_of(project)
    world.clock.advance(1)
    moved = await world.do(world.service.rehearse.advance, world.owner, project.id, _S.COMPLETED)
    assert (moved.status, moved.exported_at) == (_S.COMPLETED, world.clock.now())


async def test_strangers_and_weak_keys_move_nothing(world: World) -> None:
    project = await world.project(_S.QUEUED, origin=Origin.APP)
    advance = world.service.rehearse.advance
    with pytest.raises(NotFound):
        await world.do(advance, await world.new_owner(), project.id, _S.COMPLETED)
    weak = replace(world.owner, scopes=frozenset())
    with pytest.raises(MissingScope):
        await world.do(advance, weak, project.id, _S.COMPLETED)


@pytest.mark.parametrize("status", list(_S))
async def test_every_goal_that_is_offered_is_reached_by_legal_moves(
    world: World, status: ProjectStatus
) -> None:
    project = await world.project(status, origin=Origin.APP)
    for goal in goals_of(project):
        at = status
        for step in way_to(status, goal):
            assert step in MOVES[at]
            at = step
        assert at is goal


async def test_moving_a_project_by_hand_is_in_the_audit_trail(world: World) -> None:
    project = await world.project(_S.QUEUED, origin=Origin.APP)
    await world.do(world.service.rehearse.advance, world.owner, project.id, _S.READY)
    [entry] = await world.audit()
    assert (entry.action, entry.subject) == ("project.rehearsed", str(project.id))
    assert entry.details == {"status": "ready"}
