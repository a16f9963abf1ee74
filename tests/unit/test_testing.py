"""The test kit that ships with cuepost: a clock that jumps, ids and bytes that repeat."""

from datetime import timedelta

import anyio
import pytest
from anyio.lowlevel import checkpoint

from cuepost.domain.access import ACCOUNT_SCOPES, SERVICE_SCOPES
from cuepost.domain.instants import instant_of
from cuepost.domain.project import ProjectKind, ProjectStatus
from cuepost.testing import START, Factory, RepeatableEntropy, SequentialIds, VirtualClock


def test_the_clock_stands_still_until_it_is_told_to_go() -> None:
    clock = VirtualClock()
    assert clock.now() == clock.now() == START
    clock.advance(1.5)
    clock.advance(days=30, hours=1)
    assert clock.now() == START + timedelta(days=30, hours=1, seconds=1.5)


async def test_whoever_waits_is_woken_in_the_order_of_their_times() -> None:
    clock, woken = VirtualClock(), list[str]()

    async def waits(name: str, seconds: float) -> None:
        await clock.wait(seconds)
        woken.append(name)

    async with anyio.create_task_group() as tasks:
        for name, seconds in (("late", 60), ("early", 10), ("early too", 10)):
            tasks.start_soon(waits, name, seconds)
        await checkpoint()
        clock.advance(9)
        await checkpoint()
        assert woken == []
        clock.advance(51)
    assert woken == ["early", "early too", "late"]


async def test_a_waiter_that_has_given_up_does_not_hinder_the_others() -> None:
    clock = VirtualClock()
    with anyio.move_on_after(0) as given_up:
        await clock.wait(1)
    assert given_up.cancelled_caught
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(clock.wait, 2)
        await checkpoint()
        clock.advance(2)


def test_ids_and_bytes_are_the_same_at_every_run() -> None:
    one, other = SequentialIds(), SequentialIds()
    made = [one(START) for _ in range(10)]
    assert made == [other(START) for _ in range(10)] == sorted(set(made))
    assert instant_of(made[0]) == START
    bytes_of = [RepeatableEntropy(seed) for seed in ("a", "a", "b")]
    drawn = [entropy(16) for entropy in bytes_of]
    assert drawn[0] == drawn[1] != drawn[2]
    assert bytes_of[0](16) != drawn[0]


def test_the_factory_fills_in_what_the_test_does_not_name() -> None:
    factory = Factory(SequentialIds(), VirtualClock())
    account = factory.account(webhooks_enabled=False)
    project = factory.project(account.id, kind=ProjectKind.TRANSCRIPT)
    assert (account.webhooks_enabled, account.created_at) == (False, START)
    assert (project.account_id, project.kind) == (account.id, ProjectKind.TRANSCRIPT)
    assert project.status is ProjectStatus.QUEUED


def test_a_misspelt_field_is_refused() -> None:
    factory = Factory(SequentialIds(), VirtualClock())
    with pytest.raises(TypeError, match="nmae"):
        factory.project(factory.account().id, nmae="Trailer")


def test_the_owner_may_do_everything_in_its_account_and_the_pipeline_reports_alone() -> None:
    account = Factory(SequentialIds(), VirtualClock()).account()
    owner, pipeline = Factory.owner(account.id), Factory.pipeline()
    assert (owner.account_id, owner.scopes, owner.webhooks_enabled) == (
        account.id,
        ACCOUNT_SCOPES,
        True,
    )
    assert (pipeline.account_id, pipeline.scopes) == (None, SERVICE_SCOPES)
