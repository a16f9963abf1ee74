"""Several processes create endpoints at once: no more than allowed, and none twice."""

from collections import Counter

from cuepost.application.perform import IdempotentCall, IdempotentResponse
from cuepost.domain.errors import (
    EndpointLimitReached,
    Refused,
)
from cuepost.ports.store import Transaction
from tests.application.harness import RULES, Harness
from tests.application.racing.instances import Instances, outcome


async def test_many_who_create_endpoints_at_once_do_not_pass_the_limit(
    instances: Instances,
) -> None:
    url = "https://hooks.example.com/cue"
    outcomes = await instances.race(
        *(outcome(instances.each(place).endpoint(url=f"{url}/{place}")) for place in range(9))
    )
    assert Counter(outcomes) == {
        "done": RULES.endpoint_limit,
        EndpointLimitReached.code: 9 - RULES.endpoint_limit,
    }
    assert len((await instances.harness.dump())["endpoints"]) == RULES.endpoint_limit


async def test_one_idempotency_key_at_once_creates_one_endpoint(instances: Instances) -> None:
    harness = instances.harness
    call = IdempotentCall("key", b"print")

    async def create(by: Harness) -> IdempotentResponse:
        async def action(transaction: Transaction) -> bytes:
            made = await by.service.webhooks.create(
                transaction, harness.owner, "https://hooks.example.com/cue", None, ""
            )
            return made.view.endpoint.id.bytes

        return await by.service.perform.once(harness.owner, call, action, _refusal)

    answers = await instances.race(*(create(instances.each(place)) for place in range(6)))
    [endpoint] = (await harness.dump())["endpoints"]
    assert {answer.content for answer in answers} == {endpoint.id.bytes}
    assert Counter(answer.replayed for answer in answers) == {False: 1, True: 5}


def _refusal(refused: Refused) -> bytes:
    raise AssertionError(refused.code)
