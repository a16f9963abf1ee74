"""What this process commits it sends itself; everything else is found in the queue."""

import pytest

from cuepost.domain.delivery import DeliveryStatus
from cuepost.ports.store import Transaction
from cuepost.testing import Answer
from tests.support.stage import HOUR, Play, Stage

URL = "https://hooks.example.com/cue"


def test_a_delivery_of_the_own_process_needs_no_claim(
    play_embedded: Play, claims: list[int]
) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.world.endpoint()
        async with stage.delivering():
            await stage.later()
            claims.clear()
            for _ in range(20):
                await stage.world.complete()
            await stage.later()
            assert (len(stage.sent), claims) == (20, [])
            statuses = {each.status for each in await stage.world.deliveries()}
            assert statuses == {DeliveryStatus.DELIVERED}

    play_embedded(scenario)


def test_with_others_at_the_store_only_lanes_that_are_held_go_straight(
    play_postgres: Play, claims: list[int]
) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.world.endpoint()
        async with stage.delivering():
            await stage.later()
            claims.clear()
            await stage.world.complete()
            await stage.later()
            assert sum(claims) == 1
            stage.transport.will(URL, Answer(seconds=10))
            await stage.world.complete()
            await stage.later()
            claimed = sum(claims)
            await stage.world.complete()
            await stage.later()
            assert (sum(claims), len(stage.sent)) == (claimed, 3)

    play_postgres(scenario)


def test_what_another_process_commits_is_claimed(play: Play, claims: list[int]) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.world.endpoint()
        async with stage.delivering(straight=False) as dispatcher:
            await stage.world.complete()
            dispatcher.work_for(await stage.lanes())
            await stage.later()
            assert (len(stage.sent), sum(claims)) == (1, 1)

    play(scenario)


def test_nobody_has_to_announce_it(play: Play) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.world.endpoint()
        async with stage.delivering(straight=False):
            await stage.world.complete()
            await stage.later(HOUR)
            assert len(stage.sent) == 1

    play(scenario)


def test_more_than_memory_holds_is_sent_without_a_pause(play_embedded: Play) -> None:
    async def scenario(stage: Stage) -> None:
        world = stage.world
        await world.endpoint()
        projects = [await world.project() for _ in range(300)]
        async with stage.delivering(stage.dispatcher(attempts=4, cap=2)):
            await stage.later()
            began = stage.clock.now()
            await world.report(*[world.milestone(each) for each in projects])
            await stage.later()
            assert len(stage.sent) == 300
            # Results are written in groups, each at most 20 ms apart.
            assert (stage.clock.now() - began).total_seconds() < 1

    play_embedded(scenario)


def test_a_transaction_that_is_rolled_back_sends_nothing_and_keeps_no_room(play: Play) -> None:
    async def scenario(stage: Stage) -> None:
        world = stage.world
        webhook_id = (await world.endpoint()).view.endpoint.id

        async def regretted(transaction: Transaction) -> None:
            await world.service.webhooks.send_test(transaction, world.owner, webhook_id)
            raise LookupError

        async with stage.delivering() as dispatcher:
            await stage.later()
            for _ in range(200):
                with pytest.raises(LookupError):
                    await world.do(regretted)
            await stage.later()
            assert (stage.sent, dispatcher._board.load) == ([], 0)

    play(scenario)
