"""Projects and their files."""

from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

import pytest

from cuepost.domain.artifact import Artifact
from cuepost.domain.delivery import CancelReason, Delivery
from cuepost.domain.project import Origin, Project, ProjectKind, ProjectStatus, Stage
from cuepost.ports.records import Page, ProjectKey
from cuepost.ports.store import Transaction
from tests.support import store_rows
from tests.support.records import Records
from tests.support.store_rows import AnyStore


async def stored(store: AnyStore, project: Project) -> Project | None:
    async with store.snapshot() as transaction:
        return await transaction.projects.get(project.account_id, project.id)


async def add(store: AnyStore, *projects: Project) -> None:
    async with store.transaction() as transaction:
        for project in projects:
            await transaction.projects.add(project)


async def add_deliveries(store: AnyStore, records: Records, *projects: Project) -> list[Delivery]:
    made = [records.delivery(each.account_id, project_id=each.id) for each in projects]
    async with store.transaction() as transaction:
        await store_rows.add_deliveries(transaction, *made)
    return made


async def stop(transaction: Transaction, project: Project, now: datetime) -> None:
    await transaction.deliveries.stop_project(
        project.account_id, project.id, CancelReason.PROJECT_ACCESS_EXPIRED, now
    )


async def test_a_project_comes_back_as_it_was_added(store: AnyStore, records: Records) -> None:
    now = records.clock.now()
    projects = [
        records.project(records.id(), status=status, stage=stage, exported_at=now)
        for status in ProjectStatus
        for stage in Stage
    ] + [
        records.project(
            records.id(), kind=kind, origin=origin, name="", access_expires_at=None, deleted_at=now
        )
        for kind in ProjectKind
        for origin in Origin
    ]
    await add(store, *projects)
    assert [await stored(store, each) for each in projects] == projects


async def test_projects_are_paged_newest_first_without_the_deleted_ones(
    store: AnyStore, records: Records
) -> None:
    account_id = records.id()
    projects = [records.project(account_id) for _ in range(5)]
    deleted = records.project(account_id, deleted_at=records.clock.now())
    await add(store, *projects, deleted, records.project(records.id()))

    async with store.snapshot() as transaction:
        first = await transaction.projects.page(account_id, Page(3))
        second = await transaction.projects.page(account_id, Page(3, first[-1].id))
        third = await transaction.projects.page(account_id, Page(3, second[-1].id))

    assert [first, second, third] == [projects[:1:-1], projects[1::-1], []]


@pytest.mark.parametrize("many", [0, 1, 3, 700])
async def test_the_owner_of_each_known_project_is_found(
    store: AnyStore, records: Records, many: int
) -> None:
    projects = [records.project(records.id()) for _ in range(many)]
    await add(store, *projects)

    async with store.snapshot() as transaction:
        owners = await transaction.projects.owners(
            [project.id for project in projects] + [records.id()]
        )

    assert dict(owners) == {project.id: project.account_id for project in projects}


async def test_no_owner_is_found_when_nothing_is_asked(store: AnyStore) -> None:
    async with store.snapshot() as transaction:
        assert dict(await transaction.projects.owners([])) == {}


async def test_projects_are_locked_for_a_change_and_saved_with_it(
    store: AnyStore, records: Records
) -> None:
    account_id = records.id()
    changing, deleting, staying = (records.project(account_id) for _ in range(3))
    await add(store, changing, deleting, staying)
    later = records.clock.now() + timedelta(hours=1, milliseconds=1)

    async with store.transaction() as transaction:
        others = (account_id, records.id()), (records.id(), staying.id)
        locked = await transaction.projects.lock(
            [(account_id, deleting.id), (account_id, changing.id), *others]
        )
        assert locked == {changing.id: changing, deleting.id: deleting}
        changed = replace(
            changing,
            name="neu ✂",
            status=ProjectStatus.FAILED,
            stage=Stage.PROCESSING,
            access_expires_at=None,
            updated_at=later,
        )
        deleted = deleting.deleted(later)
        await transaction.projects.save([changed, deleted])
        await transaction.projects.save([])
        await transaction.projects.save_status([])

    assert [await stored(store, each) for each in (changing, deleting, staying)] == [
        changed,
        deleted,
        staying,
    ]


async def test_a_move_changes_status_stage_and_times_alone(
    store: AnyStore, records: Records
) -> None:
    never, again = records.project(records.id()), records.project(records.id())
    await add(store, never, again)
    later = records.clock.now() + timedelta(seconds=5)
    moved = [
        replace(never, status=ProjectStatus.FAILED, stage=Stage.EXPORT, updated_at=later),
        replace(again, status=ProjectStatus.COMPLETED, updated_at=later, exported_at=later),
    ]
    async with store.transaction() as transaction:
        await transaction.projects.save_status([replace(each, name="not this") for each in moved])
    assert [await stored(store, each) for each in (never, again)] == moved


async def test_a_change_of_a_project_keeps_when_it_was_exported(
    store: AnyStore, records: Records
) -> None:
    project = records.project(records.id(), exported_at=records.clock.now())
    await add(store, project)
    renamed = replace(project, name="Teaser")
    async with store.transaction() as transaction:
        await transaction.projects.save([renamed])
    assert await stored(store, project) == renamed


async def test_projects_are_named_from_the_end_of_their_access_window_until_they_are_stopped(
    store: AnyStore, records: Records
) -> None:
    now = records.clock.now()
    ended = [
        records.project(records.id(), access_expires_at=now - timedelta(milliseconds=age))
        for age in (2, 1, 0)
    ]
    others = [
        records.project(records.id(), access_expires_at=now + timedelta(milliseconds=1)),
        records.project(records.id(), access_expires_at=None),
        records.project(records.id(), access_expires_at=now, deleted_at=now),
    ]
    await add(store, *ended, *others)
    await add_deliveries(store, records, *ended, *others)

    async with store.snapshot() as transaction:
        assert await transaction.projects.expired(now, 2) == ended[:2]
        assert await transaction.projects.expired(now, 5) == ended

    for left in (ended[1:], ended[2:], []):
        async with store.transaction() as transaction:
            await stop(transaction, (await transaction.projects.expired(now, 1))[0], now)
            assert await transaction.projects.expired(now, 5) == left


async def test_a_project_that_changed_is_named_again_if_its_access_window_has_ended(
    store: AnyStore, records: Records
) -> None:
    now = records.clock.now()
    project = records.project(records.id(), access_expires_at=now)
    await add(store, project)
    await add_deliveries(store, records, project)
    async with store.transaction() as transaction:
        await stop(transaction, project, now)
        await transaction.projects.save([project])
    await add_deliveries(store, records, project)

    async with store.snapshot() as transaction:
        assert await transaction.projects.expired(now, 5) == [project]


async def test_nothing_is_stopped_when_the_access_window_was_extended_meanwhile(
    store: AnyStore, records: Records
) -> None:
    now = records.clock.now()
    project = records.project(records.id(), access_expires_at=now)
    await add(store, replace(project, access_expires_at=now + timedelta(milliseconds=1)))
    [delivery] = await add_deliveries(store, records, project)

    async with store.transaction() as transaction:
        await stop(transaction, project, now)
        assert await transaction.deliveries.get(project.account_id, delivery.id) == delivery


async def test_files_of_a_project_are_replaced_as_a_whole(
    store: AnyStore, records: Records
) -> None:
    account_id = records.id()
    one, other, bare = (records.project(account_id) for _ in range(3))
    before = {
        (account_id, each.id): [records.artifact() for _ in range(3)] for each in (one, other)
    }
    new = [records.artifact(size_bytes=0)]
    unknown = records.id(), other.id
    after: dict[ProjectKey, list[Artifact]] = {
        (account_id, one.id): new,
        (account_id, bare.id): [],
        unknown: [],
    }
    async with store.transaction() as transaction:
        await transaction.projects.replace_artifacts(before)
        await transaction.projects.replace_artifacts(after)
        await transaction.projects.replace_artifacts({})

    async with store.snapshot() as transaction:
        found = [
            await transaction.projects.artifacts(account_id, each.id) for each in (one, other, bare)
        ]

    assert found == [new, before[account_id, other.id], []]


async def test_files_keep_their_order(store: AnyStore, records: Records) -> None:
    account_id: UUID = records.id()
    files = [records.artifact(name=name) for name in ("z", "a", "m", "ä")]
    async with store.transaction() as transaction:
        await transaction.projects.replace_artifacts({(account_id, account_id): files})

    async with store.snapshot() as transaction:
        assert await transaction.projects.artifacts(account_id, account_id) == files
