"""No endpoint waits for another one, and nothing waits for ever."""

from collections import Counter
from datetime import datetime, timedelta

import pytest
import sqlalchemy as sa

from cuepost.adapters.storage.records.claims import Claims
from cuepost.adapters.storage.tables import queue
from cuepost.domain.delivery import DeliveryStatus
from cuepost.domain.egress_policy import EgressPolicy
from cuepost.engine.lane_board import LaneBoard
from cuepost.ports.dispatch import Assignment, Claim, Claimed
from cuepost.testing import HANGS, Answer
from cuepost.tuning import CLAIMED_AT_ONCE
from tests.support.engine_harness import HOUR, MINUTE, EngineHarness, RunScenarios

BUSY_URL = "https://busy.example.com/cue"


def url(number: int) -> str:
    return f"https://hooks{number}.example.com/cue"


async def backlog(engine: EngineHarness, count: int) -> None:
    """Queue first attempts for one endpoint; all but the first are copied in the store."""
    harness = engine.harness
    await harness.endpoint("project.completed", url=BUSY_URL)
    await harness.complete()
    [row] = (await engine.harness.dump())["queue"]
    ids = [engine.harness.ids(engine.clock.now()) for _ in range(count - 1)]
    for start in range(0, len(ids), 500):
        some = ids[start : start + 500]
        copies = [dict(row._asdict()) | {"id": each} for each in some]
        await engine.sql(sa.insert(queue).values(copies))


def places(engine: EngineHarness) -> dict[str, int]:
    """At which place among all requests each address had its first one."""
    found: dict[str, int] = {}
    for place, sent in enumerate(engine.sent):
        found.setdefault(sent.request.url.text, place)
    return found


def test_an_endpoint_with_5000_overdue_does_not_delay_50_others(run_embedded: RunScenarios) -> None:
    async def scenario(engine: EngineHarness) -> None:
        harness = engine.harness
        await backlog(engine, 5_000)
        engine.clock.advance(HOUR.total_seconds())
        for number in range(50):
            await harness.endpoint("project.failed", url=url(number))
        await harness.report(harness.milestone(await harness.project(), "failed"))
        async with engine.delivering(engine.dispatcher(attempts=16)):
            await engine.later(MINUTE)
        assert len(engine.sent) == 5_050
        others = [place for each, place in places(engine).items() if each != BUSY_URL]
        # Two rounds of what fits into memory, not thousands.
        assert max(others) < 150

    run_embedded(scenario)


def test_endpoints_that_hang_do_not_delay_others(run_scenarios: RunScenarios) -> None:
    async def scenario(engine: EngineHarness) -> None:
        harness = engine.harness
        for number in range(20):
            await harness.endpoint("project.failed", url=url(number))
            engine.transport.will(url(number), *[HANGS] * 40)
        projects = [await harness.project() for _ in range(12)]
        async with engine.delivering(engine.dispatcher(attempts=64, cap=2)):
            await harness.report(*[harness.milestone(each, "failed") for each in projects])
            await engine.later(MINUTE / 20)
            await harness.endpoint("project.completed", url=BUSY_URL)
            for _ in range(10):
                await harness.complete()
                await engine.later()
            healthy = [each for each in engine.sent if each.request.url.text == BUSY_URL]
            assert len(healthy) == 10

    run_scenarios(scenario)


def test_many_that_hang_hold_the_memory_for_a_second_at_most(run_embedded: RunScenarios) -> None:
    async def scenario(engine: EngineHarness) -> None:
        harness = engine.harness
        for number in range(8):
            await harness.endpoint("project.failed", url=url(number))
            engine.transport.will(url(number), *[HANGS] * 1_000)
        await harness.endpoint("project.completed", url=BUSY_URL)
        projects = [await harness.project() for _ in range(40)]
        async with engine.delivering(engine.dispatcher(attempts=40, cap=2)):
            await harness.report(*[harness.milestone(each, "failed") for each in projects])
            await engine.later()
            began = engine.clock.now()
            await harness.report(harness.milestone(await harness.project()))
            await engine.later(MINUTE)
            [healthy] = [each for each in engine.sent if each.request.url.text == BUSY_URL]
            assert healthy.at - began <= timedelta(seconds=1.1)

    run_embedded(scenario)


@pytest.fixture
def dropped(monkeypatch: pytest.MonkeyPatch) -> list[Assignment]:
    """Deliveries that were outdated before their turn: they are given back and claimed again."""
    found: list[Assignment] = []
    drop_expired = LaneBoard.drop_expired

    def noted(self: LaneBoard, now: float) -> list[Assignment]:
        expired = drop_expired(self, now)
        found.extend(expired)
        return expired

    monkeypatch.setattr(LaneBoard, "drop_expired", noted)
    return found


def test_a_process_holds_only_what_it_can_send_in_time(
    run_embedded: RunScenarios, dropped: list[Assignment]
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        for number in range(40):
            await engine.harness.endpoint(url=url(number))
            engine.transport.will(url(number), *[Answer(seconds=0.3)] * 20)
        async with engine.delivering(engine.dispatcher(attempts=4, cap=1)):
            for _ in range(20):
                milestone = engine.harness.milestone(await engine.harness.project())
                await engine.harness.report(milestone)
            await engine.later(2 * MINUTE)
        assert len(engine.sent) == 800
        assert len(dropped) < 200

    run_embedded(scenario)


def test_of_the_queues_of_slow_endpoints_little_is_claimed_in_vain(
    run_embedded: RunScenarios, dropped: list[Assignment]
) -> None:
    """Their attempts end together, so the slots are refilled one after the other at once."""

    async def scenario(engine: EngineHarness) -> None:
        for number in range(4):
            await engine.harness.endpoint(url=url(number))
            engine.transport.will(url(number), *[Answer(seconds=0.5)] * 100)
        projects = [await engine.harness.project() for _ in range(100)]
        await engine.harness.report(*map(engine.harness.milestone, projects))
        async with engine.delivering(engine.dispatcher(attempts=32, cap=8), direct=False):
            await engine.later(MINUTE)
        assert len(engine.sent) == 400
        assert len(dropped) < 100

    run_embedded(scenario)


def test_a_process_whose_endpoints_are_quick_holds_no_more_than_it_needs(
    run_scenarios: RunScenarios,
) -> None:
    """All of them have their most attempts in flight, which does not make them slow."""

    async def scenario(engine: EngineHarness) -> None:
        for number in range(4):
            await engine.harness.endpoint(url=url(number))
            engine.transport.will(url(number), *[Answer(seconds=0.02)] * 100)
        projects = [await engine.harness.project() for _ in range(100)]
        held: list[int] = []
        async with engine.delivering(engine.dispatcher(attempts=8, cap=2)) as dispatcher:
            await engine.harness.report(*map(engine.harness.milestone, projects))
            while len(engine.sent) < 400:
                await engine.later(timedelta(milliseconds=10))
                held.append(dispatcher.board.load)
        assert max(held) <= 16

    run_scenarios(scenario)


def test_first_attempts_are_not_starved_by_retries_of_the_same_endpoint(
    run_scenarios: RunScenarios,
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        harness = engine.harness
        await harness.endpoint("project.failed", "project.completed", url=BUSY_URL)
        engine.transport.will(BUSY_URL, *[500] * 100)
        projects = [await harness.project() for _ in range(100)]
        async with engine.delivering():
            await harness.report(*[harness.milestone(each, "failed") for each in projects])
            await engine.later(MINUTE / 2)
        assert len(engine.sent) == 100
        engine.clock.advance(HOUR.total_seconds())
        fresh = await harness.complete()
        async with engine.delivering(engine.dispatcher(attempts=4, cap=1)):
            await engine.later(MINUTE)
        again = [each.header("webhook-id") for each in engine.sent[100:]]
        assert len(again) == 101
        assert again.index(str(fresh.event_id)) <= 1

    run_scenarios(scenario)


def test_an_endpoint_gets_as_many_at_once_as_its_cap_and_no_more(
    run_scenarios: RunScenarios,
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        harness = engine.harness
        await harness.endpoint(url=BUSY_URL)
        engine.transport.will(BUSY_URL, *[Answer(seconds=5)] * 40)
        projects = [await harness.project() for _ in range(40)]
        async with engine.delivering(engine.dispatcher(cap=8)):
            await harness.report(*[harness.milestone(each) for each in projects])
            await engine.later(HOUR)
        starts = Counter(each for each in engine.offsets())
        assert engine.transport.most_in_flight == {BUSY_URL: 8}
        # Results are written, and room is asked for again, within milliseconds.
        assert [round(each, 0) for each in starts.elements()] == sorted([0, 5, 10, 15, 20] * 8)
        statuses = {each.status for each in await harness.deliveries()}
        assert statuses == {DeliveryStatus.DELIVERED}

    run_scenarios(scenario)


def test_blocked_destinations_do_not_use_up_the_room(run_embedded: RunScenarios) -> None:
    async def scenario(engine: EngineHarness) -> None:
        await engine.harness.endpoint()
        engine.policy = EgressPolicy(ports=((8443, 8443),))
        async with engine.delivering(engine.dispatcher(attempts=2, cap=1)):
            for _ in range(20):
                await engine.harness.complete()
            await engine.later(HOUR)
        statuses = Counter(each.status for each in await engine.harness.deliveries())
        assert statuses == {DeliveryStatus.FAILED: 20}

    run_embedded(scenario)


def test_of_a_long_queue_that_has_no_room_nothing_more_is_asked_for(
    run_scenarios: RunScenarios,
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        await backlog(engine, 200)
        engine.transport.will(BUSY_URL, *[HANGS] * 200)
        engine.store.watch.transactions = 0
        async with engine.delivering(engine.dispatcher(cap=2), direct=False):
            await engine.later()
            assert len(engine.sent) == 2
            assert engine.store.watch.transactions == 1

    run_scenarios(scenario)


def test_of_very_many_endpoints_with_more_few_are_asked_about_at_a_time(
    run_scenarios: RunScenarios, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    claim = Claims.claim

    async def noted(self: Claims, wanted: Claim, now: datetime) -> Claimed:
        asked.append(len(wanted.woken))
        return await claim(self, wanted, now)

    async def scenario(engine: EngineHarness) -> None:
        monkeypatch.setattr(Claims, "claim", noted)
        harness, count = engine.harness, 2 * CLAIMED_AT_ONCE + 50
        for number in range(count):
            await harness.endpoint("project.failed", url=url(number))
        await harness.report(harness.milestone(await harness.project(), "failed"))
        async with engine.delivering(direct=False) as dispatcher:
            dispatcher.work_for(await engine.lanes())
            await engine.later(MINUTE)
        assert len(places(engine)) == count

    run_scenarios(scenario)
    assert max(asked) == CLAIMED_AT_ONCE


def transactions_of_a_backlog(run_scenarios: RunScenarios, count: int, apart: float) -> int:
    """Until it is sent, four at a time; those come back that many seconds after one another."""
    transactions: list[int] = []

    async def scenario(engine: EngineHarness) -> None:
        await backlog(engine, count)
        answers = [Answer(seconds=0.05 + apart * (number % 4)) for number in range(count)]
        engine.transport.will(BUSY_URL, *answers)
        engine.store.watch.transactions = 0
        async with engine.delivering(engine.dispatcher(cap=4), direct=False):
            await engine.later(MINUTE)
            transactions.append(engine.store.watch.transactions)
        assert len(engine.sent) == count

    run_scenarios(scenario)
    return transactions[0]


def test_results_of_a_backlog_are_written_in_groups_however_few_are_in_flight(
    run_scenarios: RunScenarios,
) -> None:
    # Each group takes a transaction, and a claim takes one now and then.
    assert transactions_of_a_backlog(run_scenarios, count=200, apart=0.004) < 100


def test_on_a_shared_store_they_are_written_in_larger_groups(run_postgres: RunScenarios) -> None:
    assert transactions_of_a_backlog(run_postgres, count=200, apart=0.0125) < 100
