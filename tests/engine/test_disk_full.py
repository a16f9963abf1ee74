"""The file cannot grow, at any page: nothing is half-written, and all goes on when there is room.

The engine itself says that it is full, in the middle of whatever it was doing.
"""

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from cuepost.adapters.storage.sqlite import SqliteStore
from cuepost.application.manage_webhooks import Unveiled
from cuepost.application.milestone_book import Milestone
from cuepost.domain.delivery import DeliveryStatus
from cuepost.ports.store import StoreUnavailable
from tests.support.stage import HOUR, MINUTE, Play, Scenario, Stage

PROJECTS = 40
STEP = 1 if os.environ.get("CUEPOST_TEST_STORE_ERRORS") == "all" else 6
# Forty events of half a kilobyte, and their deliveries to two endpoints.
MOST_PAGES = 36
PLENTY = 1_000_000


@contextmanager
def full(stage: Stage, pages: int) -> Iterator[None]:
    """There is room for so many further pages and no more, unless more had been given back."""
    assert isinstance(stage.store.inner, SqliteStore)
    assert stage.store.inner._writer is not None
    driver = stage.store.inner._writer
    [[free]] = driver.execute("PRAGMA freelist_count").fetchall()
    [[count]] = driver.execute("PRAGMA page_count").fetchall()
    driver.execute(f"PRAGMA max_page_count={count + max(0, pages - free)}")
    try:
        yield
    finally:
        driver.execute(f"PRAGMA max_page_count={PLENTY}")


async def prepared(stage: Stage) -> list[Milestone]:
    for number in range(2):
        await stage.world.endpoint(url=f"https://hooks{number}.example.com/cue")
    return [stage.world.milestone(await stage.world.project()) for _ in range(PROJECTS)]


def reported_with_room_for(pages: int, refused: list[int]) -> Scenario:
    async def scenario(stage: Stage) -> None:
        milestones = await prepared(stage)
        before = await stage.world.dump()
        with full(stage, pages):
            try:
                await stage.world.report(*milestones)
            except StoreUnavailable:
                refused.append(pages)
                assert await stage.world.dump() == before
        await stage.world.report(*milestones)
        await require_all_delivered(stage)

    return scenario


def two_at_once_with_room_for(pages: int) -> Scenario:
    """They wait for the disk together, and the engine may give up on both."""

    async def scenario(stage: Stage) -> None:
        milestones = await prepared(stage)
        with full(stage, pages):
            made, answers = await asyncio.gather(
                stage.world.endpoint(url="https://hooks9.example.com/cue"),
                stage.world.report(*milestones),
                return_exceptions=True,
            )
        for each in (made, answers):
            assert not isinstance(each, BaseException) or isinstance(each, StoreUnavailable)
        stored = await stage.world.dump()
        assert len(stored["endpoints"]) == 2 + isinstance(made, Unveiled)
        assert len(stored["reports"]) == (PROJECTS if isinstance(answers, list) else 0)
        await stage.world.report(*milestones)
        await require_all_delivered(stage)

    return scenario


def delivered_with_room_for(pages: int) -> Scenario:
    """What came of attempts cannot be written for a while; they are not made twice for that."""

    async def scenario(stage: Stage) -> None:
        await stage.world.report(*await prepared(stage))
        async with stage.delivering():
            with full(stage, pages):
                await stage.later(MINUTE)
            await stage.later(MINUTE)
        await require_all_delivered(stage)
        assert len(stage.sent) == 2 * PROJECTS

    return scenario


async def require_all_delivered(stage: Stage) -> None:
    async with stage.delivering():
        await stage.later(HOUR)
    statuses = [each.status for each in await stage.world.deliveries()]
    assert set(statuses) == {DeliveryStatus.DELIVERED}
    seen = {(each.request.url.text, each.header("webhook-id")) for each in stage.sent}
    assert len(seen) == len(statuses) >= 2 * PROJECTS


def test_a_report_is_taken_whole_or_refused(play_embedded: Play) -> None:
    refused: list[int] = []
    for pages in range(0, MOST_PAGES + 1, STEP):
        play_embedded(reported_with_room_for(pages, refused))
    assert refused
    assert refused == list(range(0, refused[-1] + 1, STEP))
    assert refused[-1] < MOST_PAGES, "it never had room enough"


@pytest.mark.parametrize("pages", range(0, MOST_PAGES + 1, STEP))
def test_of_two_at_once_each_is_told_the_truth(play_embedded: Play, pages: int) -> None:
    play_embedded(two_at_once_with_room_for(pages))


@pytest.mark.parametrize("pages", range(0, MOST_PAGES + 1, STEP))
def test_results_are_written_when_there_is_room_again(play_embedded: Play, pages: int) -> None:
    play_embedded(delivered_with_room_for(pages))
