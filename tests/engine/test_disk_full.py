"""The file cannot grow, at any page: nothing is half-written, and all goes on when there is room.

The engine itself says that it is full, in the middle of whatever it was doing.
"""

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from cuepost.adapters.storage.sqlite import SqliteStore
from cuepost.application.manage_webhooks import EndpointWithSecret
from cuepost.application.milestone_batch import Milestone
from cuepost.domain.delivery import DeliveryStatus
from cuepost.ports.store import StoreUnavailable
from tests.support.engine_harness import HOUR, MINUTE, EngineHarness, RunScenarios, Scenario

PROJECTS = 40
STEP = 1 if os.environ.get("CUEPOST_TEST_STORE_ERRORS") == "all" else 6
# Forty events of half a kilobyte, and their deliveries to two endpoints.
MOST_PAGES = 36
PLENTY = 1_000_000


@contextmanager
def full(engine: EngineHarness, pages: int) -> Iterator[None]:
    """Limit the file to this number of further pages; freed pages can be used again."""
    assert isinstance(engine.store.inner, SqliteStore)
    assert engine.store.inner._writer is not None
    driver = engine.store.inner._writer
    [[free]] = driver.execute("PRAGMA freelist_count").fetchall()
    [[count]] = driver.execute("PRAGMA page_count").fetchall()
    driver.execute(f"PRAGMA max_page_count={count + max(0, pages - free)}")
    try:
        yield
    finally:
        driver.execute(f"PRAGMA max_page_count={PLENTY}")


async def prepared(engine: EngineHarness) -> list[Milestone]:
    for number in range(2):
        await engine.harness.endpoint(url=f"https://hooks{number}.example.com/cue")
    return [engine.harness.milestone(await engine.harness.project()) for _ in range(PROJECTS)]


def reported_with_room_for(pages: int, refused: list[int]) -> Scenario:
    async def scenario(engine: EngineHarness) -> None:
        milestones = await prepared(engine)
        before = await engine.harness.dump()
        with full(engine, pages):
            try:
                await engine.harness.report(*milestones)
            except StoreUnavailable:
                refused.append(pages)
                assert await engine.harness.dump() == before
        await engine.harness.report(*milestones)
        await require_all_delivered(engine)

    return scenario


def two_at_once_with_room_for(pages: int) -> Scenario:
    """They wait for the disk together, and the engine may give up on both."""

    async def scenario(engine: EngineHarness) -> None:
        milestones = await prepared(engine)
        with full(engine, pages):
            made, answers = await asyncio.gather(
                engine.harness.endpoint(url="https://hooks9.example.com/cue"),
                engine.harness.report(*milestones),
                return_exceptions=True,
            )
        for each in (made, answers):
            assert not isinstance(each, BaseException) or isinstance(each, StoreUnavailable)
        stored = await engine.harness.dump()
        assert len(stored["endpoints"]) == 2 + isinstance(made, EndpointWithSecret)
        assert len(stored["reports"]) == (PROJECTS if isinstance(answers, list) else 0)
        await engine.harness.report(*milestones)
        await require_all_delivered(engine)

    return scenario


def delivered_with_room_for(pages: int) -> Scenario:
    """What came of attempts cannot be written for a while; they are not made twice for that."""

    async def scenario(engine: EngineHarness) -> None:
        await engine.harness.report(*await prepared(engine))
        async with engine.delivering():
            with full(engine, pages):
                await engine.later(MINUTE)
            await engine.later(MINUTE)
        await require_all_delivered(engine)
        assert len(engine.sent) == 2 * PROJECTS

    return scenario


async def require_all_delivered(engine: EngineHarness) -> None:
    async with engine.delivering():
        await engine.later(HOUR)
    statuses = [each.status for each in await engine.harness.deliveries()]
    assert set(statuses) == {DeliveryStatus.DELIVERED}
    seen = {(each.request.url.text, each.header("webhook-id")) for each in engine.sent}
    assert len(seen) == len(statuses) >= 2 * PROJECTS


def test_a_report_is_taken_whole_or_refused(run_embedded: RunScenarios) -> None:
    refused: list[int] = []
    for pages in range(0, MOST_PAGES + 1, STEP):
        run_embedded(reported_with_room_for(pages, refused))
    assert refused
    assert refused == list(range(0, refused[-1] + 1, STEP))
    assert refused[-1] < MOST_PAGES, "it never had room enough"


@pytest.mark.parametrize("pages", range(0, MOST_PAGES + 1, STEP))
def test_of_two_at_once_each_is_told_the_truth(run_embedded: RunScenarios, pages: int) -> None:
    run_embedded(two_at_once_with_room_for(pages))


@pytest.mark.parametrize("pages", range(0, MOST_PAGES + 1, STEP))
def test_results_are_written_when_there_is_room_again(
    run_embedded: RunScenarios, pages: int
) -> None:
    run_embedded(delivered_with_room_for(pages))
