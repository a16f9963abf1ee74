"""The result address: who may ask, when there is a result, and when it is gone."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from cuepost.application.project_result import ProjectResult
from cuepost.domain.access import ACCOUNT_SCOPES, Scope
from cuepost.domain.errors import (
    MissingScope,
    NotFound,
    ProjectAccessExpired,
    ProjectDeleted,
    ResultNotReady,
)
from cuepost.domain.project import ProjectStatus
from tests.application.world import World


async def result(world: World, project_id: UUID) -> ProjectResult:
    return await world.see(world.service.results.get, world.owner, project_id)


async def test_a_completed_project_has_a_result(world: World) -> None:
    project = await world.project(ProjectStatus.COMPLETED)
    assert (await result(world, project.id)).project == project


async def test_a_project_that_is_not_completed_says_what_it_is(world: World) -> None:
    project = await world.project(ProjectStatus.EXPORTING)
    with pytest.raises(ResultNotReady) as refused:
        await result(world, project.id)
    assert refused.value.details == {"projectStatus": "exporting"}


async def test_at_the_end_of_its_window_the_result_is_gone(world: World) -> None:
    end = world.clock.now() + timedelta(hours=1)
    project = await world.project(ProjectStatus.COMPLETED, access_expires_at=end)
    world.clock.advance(3_599.999)
    await result(world, project.id)
    world.clock.advance(0.001)
    with pytest.raises(ProjectAccessExpired):
        await result(world, project.id)


async def test_neither_an_event_nor_a_retry_nor_a_fetch_extends_access(world: World) -> None:
    webhook = (await world.endpoint()).view.endpoint
    end = world.clock.now() + timedelta(hours=1)
    project = await world.project(access_expires_at=end)
    delivery = await world.complete(project)
    await world.enable(webhook.id, False)
    await world.enable(webhook.id, True)
    await world.do(world.service.redeliver.one, world.owner, webhook.id, delivery.id)
    await result(world, project.id)
    assert (await world.stored(project)).access_expires_at == end


async def test_the_result_of_a_deleted_project_is_gone(world: World) -> None:
    project = await world.project(ProjectStatus.COMPLETED)
    await world.do(world.service.projects.delete, world.owner, project.id)
    with pytest.raises(ProjectDeleted):
        await result(world, project.id)


async def test_the_result_of_another_account_is_not_found(world: World) -> None:
    theirs = await world.project(ProjectStatus.COMPLETED, caller=await world.new_owner())
    for project_id in (theirs.id, UUID(int=1)):
        with pytest.raises(NotFound):
            await result(world, project_id)


async def test_a_key_without_the_read_scope_is_refused(world: World) -> None:
    project = await world.project(ProjectStatus.COMPLETED)
    blind = replace(world.owner, scopes=ACCOUNT_SCOPES - {Scope.PROJECTS_READ})
    with pytest.raises(MissingScope):
        await world.see(world.service.results.get, blind, project.id)
