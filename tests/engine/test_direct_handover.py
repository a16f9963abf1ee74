"""What this process commits it sends itself; everything else is found in the queue."""

import pytest

from cuepost.domain.delivery import DeliveryStatus
from cuepost.ports.store import Transaction
from cuepost.testing import Answer
from tests.support.engine_harness import HOUR, EngineHarness, RunScenarios

URL = "https://hooks.example.com/cue"


def test_a_delivery_of_the_own_process_needs_no_claim(
    run_embedded: RunScenarios, claims: list[int]
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        await engine.harness.endpoint()
        async with engine.delivering():
            await engine.later()
            claims.clear()
            for _ in range(20):
                await engine.harness.complete()
            await engine.later()
            assert (len(engine.sent), claims) == (20, [])
            statuses = {each.status for each in await engine.harness.deliveries()}
            assert statuses == {DeliveryStatus.DELIVERED}

    run_embedded(scenario)


def test_with_others_at_the_store_only_lanes_that_are_held_go_straight(
    run_postgres: RunScenarios, claims: list[int]
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        await engine.harness.endpoint()
        async with engine.delivering():
            await engine.later()
            claims.clear()
            await engine.harness.complete()
            await engine.later()
            assert sum(claims) == 1
            engine.transport.will(URL, Answer(seconds=10))
            await engine.harness.complete()
            await engine.later()
            claimed = sum(claims)
            await engine.harness.complete()
            await engine.later()
            assert (sum(claims), len(engine.sent)) == (claimed, 3)

    run_postgres(scenario)


def test_what_another_process_commits_is_claimed(
    run_scenarios: RunScenarios, claims: list[int]
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        await engine.harness.endpoint()
        async with engine.delivering(direct=False) as dispatcher:
            await engine.harness.complete()
            dispatcher.work_for(await engine.lanes())
            await engine.later()
            assert (len(engine.sent), sum(claims)) == (1, 1)

    run_scenarios(scenario)


def test_it_needs_no_announcement(run_scenarios: RunScenarios) -> None:
    async def scenario(engine: EngineHarness) -> None:
        await engine.harness.endpoint()
        async with engine.delivering(direct=False):
            await engine.harness.complete()
            await engine.later(HOUR)
            assert len(engine.sent) == 1

    run_scenarios(scenario)


def test_more_than_memory_holds_is_sent_without_a_pause(run_embedded: RunScenarios) -> None:
    async def scenario(engine: EngineHarness) -> None:
        harness = engine.harness
        await harness.endpoint()
        projects = [await harness.project() for _ in range(300)]
        async with engine.delivering(engine.dispatcher(attempts=4, cap=2)):
            await engine.later()
            began = engine.clock.now()
            await harness.report(*[harness.milestone(each) for each in projects])
            await engine.later()
            assert len(engine.sent) == 300
            # Results are written in groups, each at most 20 ms apart.
            assert (engine.clock.now() - began).total_seconds() < 1

    run_embedded(scenario)


def test_a_transaction_that_is_rolled_back_sends_nothing_and_keeps_no_room(
    run_scenarios: RunScenarios,
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        harness = engine.harness
        webhook_id = (await harness.endpoint()).view.endpoint.id

        async def regretted(transaction: Transaction) -> None:
            await harness.service.webhooks.send_test(transaction, harness.owner, webhook_id)
            raise LookupError

        async with engine.delivering() as dispatcher:
            await engine.later()
            for _ in range(200):
                with pytest.raises(LookupError):
                    await harness.do(regretted)
            await engine.later()
            assert (engine.sent, dispatcher.board.load) == ([], 0)

    run_scenarios(scenario)


def test_room_that_a_rollback_returns_is_claimed_for(run_embedded: RunScenarios) -> None:
    async def scenario(engine: EngineHarness) -> None:
        harness = engine.harness
        await harness.endpoint()
        [lane] = await engine.lanes()
        async with engine.delivering() as dispatcher:
            await engine.later()
            # A batch that is being written holds all the room of the endpoint.
            reserved = 0
            while dispatcher.reserve(lane):
                reserved += 1
            await harness.complete()
            await engine.later()
            assert engine.sent == []
            dispatcher.give_back([lane] * reserved)
            await engine.later()
            assert len(engine.sent) == 1

    run_embedded(scenario)
