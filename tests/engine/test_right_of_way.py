"""What is being accepted goes first; what can wait does, though not for long."""

from datetime import timedelta

from cuepost.domain.delivery import DeliveryStatus
from cuepost.engine.right_of_way import LONGEST_SECONDS, RightOfWay
from tests.support.stage import Play, Stage

LONGEST = timedelta(seconds=LONGEST_SECONDS)


async def statuses(stage: Stage) -> list[DeliveryStatus]:
    return [each.status for each in await stage.world.deliveries()]


def test_a_record_waits_until_what_is_being_accepted_has_passed(play_embedded: Play) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.world.endpoint()
        async with stage.delivering() as dispatcher:
            dispatcher.make_way()
            await stage.world.complete()
            await stage.later(LONGEST / 2)
            assert len(stage.sent) == 1
            assert await statuses(stage) == [DeliveryStatus.DELIVERING]
            dispatcher.passed()
            await stage.later()
            assert await statuses(stage) == [DeliveryStatus.DELIVERED]

    play_embedded(scenario)


def test_a_claim_waits_until_what_is_being_accepted_has_passed(play: Play) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.world.endpoint()
        async with stage.delivering(straight=False) as dispatcher:
            await stage.world.complete()
            dispatcher.make_way()
            dispatcher.work_for([each.webhook_id for each in await stage.world.deliveries()])
            await stage.later(LONGEST / 2)
            assert not stage.sent
            dispatcher.passed()
            await stage.later()
            assert len(stage.sent) == 1

    play(scenario)


def test_where_there_is_no_end_of_it_the_rest_goes_on(play: Play) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.world.endpoint()
        async with stage.delivering() as dispatcher:
            dispatcher.make_way()
            await stage.world.complete()
            await stage.later(2 * LONGEST)
            assert await statuses(stage) == [DeliveryStatus.DELIVERED]
            dispatcher.passed()

    play(scenario)


def test_it_is_clear_when_the_last_has_passed(play_embedded: Play) -> None:
    async def scenario(stage: Stage) -> None:
        way, began = RightOfWay(stage.clock), stage.clock.now()
        await way.give()
        way.expect()
        way.expect()
        way.passed()
        await way.give()
        assert stage.clock.now() == began + LONGEST
        way.passed()
        await way.give()
        assert stage.clock.now() == began + LONGEST

    play_embedded(scenario)
