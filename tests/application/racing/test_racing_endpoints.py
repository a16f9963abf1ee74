"""Several processes create endpoints at once: no more than allowed, and none twice."""

from collections import Counter

from cuepost.application.perform import Answer, IdempotentCall
from cuepost.domain.errors import (
    EndpointLimitReached,
    Refused,
)
from cuepost.ports.store import Transaction
from tests.application.racing.rivals import Rivals, outcome
from tests.application.world import RULES, World


async def test_many_who_create_endpoints_at_once_do_not_pass_the_limit(rivals: Rivals) -> None:
    url = "https://hooks.example.com/cue"
    outcomes = await rivals.race(
        *(outcome(rivals.each(place).endpoint(url=f"{url}/{place}")) for place in range(9))
    )
    assert Counter(outcomes) == {
        "done": RULES.endpoint_limit,
        EndpointLimitReached.code: 9 - RULES.endpoint_limit,
    }
    assert len((await rivals.world.dump())["endpoints"]) == RULES.endpoint_limit


async def test_one_idempotency_key_at_once_creates_one_endpoint(rivals: Rivals) -> None:
    world = rivals.world
    call = IdempotentCall("key", b"print")

    async def create(by: World) -> Answer:
        async def action(transaction: Transaction) -> bytes:
            made = await by.service.webhooks.create(
                transaction, world.owner, "https://hooks.example.com/cue", None, ""
            )
            return made.view.endpoint.id.bytes

        return await by.service.perform.once(world.owner, call, action, _refusal)

    answers = await rivals.race(*(create(rivals.each(place)) for place in range(6)))
    [endpoint] = (await world.dump())["endpoints"]
    assert {answer.content for answer in answers} == {endpoint.id.bytes}
    assert Counter(answer.replayed for answer in answers) == {False: 1, True: 5}


def _refusal(refused: Refused) -> bytes:
    raise AssertionError(refused.code)
