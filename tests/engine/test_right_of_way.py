"""What is being accepted goes first; what can wait does, though not for long."""

import asyncio
from datetime import timedelta

import anyio.lowlevel
import pytest

from cuepost.domain.delivery import DeliveryStatus
from cuepost.engine.dispatcher import Dispatcher
from cuepost.engine.right_of_way import RightOfWay
from cuepost.engine.single_file import SingleFile
from cuepost.ports.store import GaveWay, Manner
from cuepost.tuning import COMPANY_SECONDS, LONGEST_YIELD_SECONDS
from tests.support.stage import Play, Stage

LONGEST = timedelta(seconds=LONGEST_YIELD_SECONDS)


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
            lanes = await stage.lanes()
            dispatcher.make_way()
            dispatcher.work_for(lanes)
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


class Work:
    """Notes in which manner it was asked for; as often as it is told to, it gives way."""

    def __init__(self, times_given_up: int = 0) -> None:
        self.manners: list[Manner] = []
        self._times_given_up = times_given_up

    async def __call__(self, manner: Manner) -> None:
        self.manners.append(manner)
        if len(self.manners) <= self._times_given_up:
            raise GaveWay("on purpose")


def test_it_is_clear_when_the_last_has_passed(play_embedded: Play) -> None:
    async def scenario(stage: Stage) -> None:
        way, began, work = RightOfWay(stage.clock), stage.clock.now(), Work()
        await way.behind(work)
        way.expect()
        way.expect()
        way.passed()
        await way.behind(work)
        assert stage.clock.now() == began + LONGEST
        way.passed()
        assert not way.is_taken
        await way.behind(work)
        assert stage.clock.now() == began + LONGEST
        # What had waited for as long as it may is not given up any more.
        assert work.manners == [Manner.YIELDING, Manner.REPEATABLE, Manner.YIELDING]

    play_embedded(scenario)


def test_work_is_given_up_once_at_most(play_embedded: Play) -> None:
    async def scenario(stage: Stage) -> None:
        way, work = RightOfWay(stage.clock), Work(times_given_up=1)
        await way.behind(work)
        assert work.manners == [Manner.YIELDING, Manner.REPEATABLE]

    play_embedded(scenario)


def test_a_claim_and_a_record_that_were_given_up_are_made_again(
    play_embedded: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_up = []

    async def scenario(stage: Stage) -> None:
        def is_expecting(self: Dispatcher) -> bool:
            given_up.append(stage.clock.now())
            return True

        monkeypatch.setattr(Dispatcher, "is_expecting", is_expecting)
        await stage.world.endpoint()
        await stage.world.complete()
        async with stage.delivering():
            await stage.later()
            assert await statuses(stage) == [DeliveryStatus.DELIVERED]
        assert len(stage.sent) == 1

    play_embedded(scenario)
    assert len(given_up) >= 2


def test_in_company_an_attempt_of_a_backlog_waits_for_what_is_being_accepted_but_not_for_long(
    play_embedded: Play,
) -> None:
    async def scenario(stage: Stage) -> None:
        way, began = RightOfWay(stage.clock), stage.clock.now()
        backlog = SingleFile(stage.clock, way)
        way.expect()
        await backlog.enter()
        assert stage.clock.now() == began
        backlog.in_company()
        await backlog.enter()
        assert stage.clock.now() == began + LONGEST
        way.passed()
        await backlog.enter()
        assert stage.clock.now() == began + LONGEST

    play_embedded(scenario)


def test_in_company_attempts_of_a_backlog_begin_in_different_turns_of_the_event_loop(
    play_embedded: Play,
) -> None:
    async def turns_taken(backlog: SingleFile) -> list[int]:
        """In how many turns one, two and so on of them have begun."""
        begun: list[int] = []
        entering = [asyncio.ensure_future(backlog.enter()) for _ in range(3)]
        while len(begun) < 20 and not all(each.done() for each in entering):
            await anyio.lowlevel.checkpoint()
            begun.append(sum(each.done() for each in entering))
        return sorted(set(begun) - {0})

    async def scenario(stage: Stage) -> None:
        backlog = SingleFile(stage.clock, RightOfWay(stage.clock))
        assert await turns_taken(backlog) == [3]
        backlog.in_company()
        assert await turns_taken(backlog) == [1, 2, 3]
        await stage.later(timedelta(seconds=COMPANY_SECONDS))
        assert await turns_taken(backlog) == [3]

    play_embedded(scenario)
