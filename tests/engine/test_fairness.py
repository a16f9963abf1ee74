"""No endpoint waits for another one, and nothing waits for ever."""

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from cuepost.adapters.storage.tables import queue
from cuepost.domain.delivery import DeliveryStatus
from cuepost.domain.egress_policy import EgressPolicy
from cuepost.engine.intake import Intake
from cuepost.ports.dispatch import Claim, Lane
from cuepost.testing import HANGS, Answer
from cuepost.tuning import CLAIMED_AT_ONCE
from tests.support.stage import HOUR, MINUTE, Play, Stage

BUSY_URL = "https://busy.example.com/cue"


def url(number: int) -> str:
    return f"https://hooks{number}.example.com/cue"


async def backlog(stage: Stage, count: int) -> None:
    """So many first attempts for one endpoint; all but the first are copied in the store."""
    world = stage.world
    await world.endpoint("project.completed", url=BUSY_URL)
    await world.complete()
    [row] = (await stage.world.dump())["queue"]
    ids = [stage.world.ids(stage.clock.now()) for _ in range(count - 1)]
    for start in range(0, len(ids), 500):
        some = ids[start : start + 500]
        copies = [dict(row._asdict()) | {"id": each} for each in some]
        await stage.sql(sa.insert(queue).values(copies))


def places(stage: Stage) -> dict[str, int]:
    """At which place among all requests each address had its first one."""
    found: dict[str, int] = {}
    for place, sent in enumerate(stage.sent):
        found.setdefault(sent.request.url.text, place)
    return found


def test_an_endpoint_with_5000_overdue_does_not_delay_50_others(play_embedded: Play) -> None:
    async def scenario(stage: Stage) -> None:
        world = stage.world
        await backlog(stage, 5_000)
        stage.clock.advance(HOUR.total_seconds())
        for number in range(50):
            await world.endpoint("project.failed", url=url(number))
        await world.report(world.milestone(await world.project(), "failed"))
        async with stage.delivering(stage.dispatcher(attempts=16)):
            await stage.later(MINUTE)
        assert len(stage.sent) == 5_050
        others = [place for each, place in places(stage).items() if each != BUSY_URL]
        # Two rounds of what fits into memory, not thousands.
        assert max(others) < 150

    play_embedded(scenario)


def test_endpoints_that_hang_do_not_delay_others(play: Play) -> None:
    async def scenario(stage: Stage) -> None:
        world = stage.world
        for number in range(20):
            await world.endpoint("project.failed", url=url(number))
            stage.transport.will(url(number), *[HANGS] * 40)
        projects = [await world.project() for _ in range(12)]
        async with stage.delivering(stage.dispatcher(attempts=64, cap=2)):
            await world.report(*[world.milestone(each, "failed") for each in projects])
            await stage.later(MINUTE / 20)
            await world.endpoint("project.completed", url=BUSY_URL)
            for _ in range(10):
                await world.complete()
                await stage.later()
            healthy = [each for each in stage.sent if each.request.url.text == BUSY_URL]
            assert len(healthy) == 10

    play(scenario)


def test_many_that_hang_hold_the_memory_for_a_second_at_most(play_embedded: Play) -> None:
    async def scenario(stage: Stage) -> None:
        world = stage.world
        for number in range(8):
            await world.endpoint("project.failed", url=url(number))
            stage.transport.will(url(number), *[HANGS] * 1_000)
        await world.endpoint("project.completed", url=BUSY_URL)
        projects = [await world.project() for _ in range(40)]
        async with stage.delivering(stage.dispatcher(attempts=40, cap=2)):
            await world.report(*[world.milestone(each, "failed") for each in projects])
            await stage.later()
            began = stage.clock.now()
            await world.report(world.milestone(await world.project()))
            await stage.later(MINUTE)
            [healthy] = [each for each in stage.sent if each.request.url.text == BUSY_URL]
            assert healthy.at - began <= timedelta(seconds=1.1)

    play_embedded(scenario)


def test_first_attempts_are_not_starved_by_retries_of_the_same_endpoint(play: Play) -> None:
    async def scenario(stage: Stage) -> None:
        world = stage.world
        await world.endpoint("project.failed", "project.completed", url=BUSY_URL)
        stage.transport.will(BUSY_URL, *[500] * 100)
        projects = [await world.project() for _ in range(100)]
        async with stage.delivering():
            await world.report(*[world.milestone(each, "failed") for each in projects])
            await stage.later(MINUTE / 2)
        assert len(stage.sent) == 100
        stage.clock.advance(HOUR.total_seconds())
        fresh = await world.complete()
        async with stage.delivering(stage.dispatcher(attempts=4, cap=1)):
            await stage.later(MINUTE)
        again = [each.header("webhook-id") for each in stage.sent[100:]]
        assert len(again) == 101
        assert again.index(str(fresh.event_id)) <= 1

    play(scenario)


def test_an_endpoint_gets_as_many_at_once_as_its_cap_and_no_more(play: Play) -> None:
    async def scenario(stage: Stage) -> None:
        world = stage.world
        await world.endpoint(url=BUSY_URL)
        stage.transport.will(BUSY_URL, *[Answer(seconds=5)] * 40)
        projects = [await world.project() for _ in range(40)]
        async with stage.delivering(stage.dispatcher(cap=8)):
            await world.report(*[world.milestone(each) for each in projects])
            await stage.later(HOUR)
        starts = Counter(each for each in stage.offsets())
        assert stage.transport.most_in_flight == {BUSY_URL: 8}
        # Results are written, and room is asked for again, within milliseconds.
        assert [round(each, 0) for each in starts.elements()] == sorted([0, 5, 10, 15, 20] * 8)
        statuses = {each.status for each in await world.deliveries()}
        assert statuses == {DeliveryStatus.DELIVERED}

    play(scenario)


def test_blocked_destinations_do_not_use_up_the_room(play_embedded: Play) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.world.endpoint()
        stage.policy = EgressPolicy(ports=((8443, 8443),))
        async with stage.delivering(stage.dispatcher(attempts=2, cap=1)):
            for _ in range(20):
                await stage.world.complete()
            await stage.later(HOUR)
        statuses = Counter(each.status for each in await stage.world.deliveries())
        assert statuses == {DeliveryStatus.FAILED: 20}

    play_embedded(scenario)


def test_of_a_long_queue_that_has_no_room_nothing_more_is_asked_for(play: Play) -> None:
    async def scenario(stage: Stage) -> None:
        await backlog(stage, 200)
        stage.transport.will(BUSY_URL, *[HANGS] * 200)
        stage.store.watch.transactions = 0
        async with stage.delivering(stage.dispatcher(cap=2), straight=False):
            await stage.later()
            assert len(stage.sent) == 2
            assert stage.store.watch.transactions == 1

    play(scenario)


def test_of_very_many_endpoints_with_more_few_are_asked_about_at_a_time(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    wanted = Intake._wanted

    def noted(self: Intake, room: int, hints: set[Lane], *others: Any) -> Claim:
        asked.append(len(hints))
        return wanted(self, room, hints, *others)

    async def scenario(stage: Stage) -> None:
        monkeypatch.setattr(Intake, "_wanted", noted)
        world, count = stage.world, 2 * CLAIMED_AT_ONCE + 50
        for number in range(count):
            await world.endpoint("project.failed", url=url(number))
        await world.report(world.milestone(await world.project(), "failed"))
        async with stage.delivering(straight=False) as dispatcher:
            dispatcher.work_for(await stage.lanes())
            await stage.later(MINUTE)
        assert len(places(stage)) == count

    play(scenario)
    assert max(asked) == CLAIMED_AT_ONCE


def transactions_of_a_backlog(play: Play, count: int, apart: float) -> int:
    """Until it is sent, four at a time; those come back that many seconds after one another."""
    transactions: list[int] = []

    async def scenario(stage: Stage) -> None:
        await backlog(stage, count)
        answers = [Answer(seconds=0.05 + apart * (number % 4)) for number in range(count)]
        stage.transport.will(BUSY_URL, *answers)
        stage.store.watch.transactions = 0
        async with stage.delivering(stage.dispatcher(cap=4), straight=False):
            await stage.later(MINUTE)
            transactions.append(stage.store.watch.transactions)
        assert len(stage.sent) == count

    play(scenario)
    return transactions[0]


def test_results_of_a_backlog_are_written_in_groups_however_few_are_in_flight(play: Play) -> None:
    # Each group takes a transaction, and a claim takes one now and then.
    assert transactions_of_a_backlog(play, count=200, apart=0.004) < 100


def test_on_a_shared_store_they_are_written_in_larger_groups(play_postgres: Play) -> None:
    assert transactions_of_a_backlog(play_postgres, count=200, apart=0.0125) < 100
