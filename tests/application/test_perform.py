"""Use cases run in one transaction, contention is tried again, and a key's answer is kept."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import pytest

from cuepost.adapters.storage.records.guards import IdempotencyRecords
from cuepost.application.perform import TRIES, IdempotentCall, IdempotentResponse, Perform
from cuepost.domain.errors import (
    EndpointLimitReached,
    IdempotencyKeyReused,
    NotFound,
    Refused,
)
from cuepost.ports.store import Contention, Store, Transaction
from cuepost.testing import Factory
from tests.application.harness import Harness

CALL = IdempotentCall("key-1", b"fingerprint")
OTHER_BODY = IdempotentCall("key-1", b"another body")
Work = Callable[[Transaction], Awaitable[bytes]]


def refusal(refused: Refused) -> bytes:
    return refused.code.encode()


def creating(harness: Harness) -> Work:
    """Adds an endpoint each time that it really runs."""

    async def create(transaction: Transaction) -> bytes:
        made = await harness.service.webhooks.create(
            transaction, harness.owner, "https://hooks.example.com/", None, ""
        )
        return made.secret.reveal().encode()

    return create


async def once(harness: Harness, call: IdempotentCall | None, work: Work) -> IdempotentResponse:
    return await harness.service.perform.once(harness.owner, call, work, refusal)


async def endpoints(harness: Harness) -> int:
    return await harness.see(lambda t: t.endpoints.count(harness.account.id))


async def test_the_same_key_and_body_get_the_first_answer_again(harness: Harness) -> None:
    first = await once(harness, CALL, creating(harness))
    assert not first.replayed
    harness.clock.advance(hours=23, minutes=59)
    assert await once(harness, CALL, creating(harness)) == IdempotentResponse(
        first.content, replayed=True
    )
    assert await endpoints(harness) == 1


async def test_the_same_key_with_another_body_is_refused(harness: Harness) -> None:
    first = await once(harness, CALL, creating(harness))
    with pytest.raises(IdempotencyKeyReused):
        await once(harness, OTHER_BODY, creating(harness))
    assert await once(harness, CALL, creating(harness)) == replace(first, replayed=True)
    assert await endpoints(harness) == 1


async def test_a_key_is_forgotten_after_a_day(harness: Harness) -> None:
    first = await once(harness, CALL, creating(harness))
    harness.clock.advance(hours=24)
    again = await once(harness, OTHER_BODY, creating(harness))
    assert not again.replayed
    assert again.content != first.content
    assert await endpoints(harness) == 2


async def test_keys_of_two_accounts_do_not_meet(harness: Harness) -> None:
    await once(harness, CALL, creating(harness))
    stranger = await harness.new_owner()
    answer = await harness.service.perform.once(stranger, OTHER_BODY, creating(harness), refusal)
    assert not answer.replayed


async def test_another_api_key_of_the_account_never_gets_the_answer(harness: Harness) -> None:
    mine, theirs = (replace(harness.owner, id=harness.ids(harness.clock.now())) for _ in range(2))
    perform, work = harness.service.perform, creating(harness)
    first = await perform.once(mine, CALL, work, refusal)
    second = await perform.once(theirs, CALL, work, refusal)
    assert (first.replayed, second.replayed) == (False, False)
    assert first.content != second.content
    assert await perform.once(mine, CALL, work, refusal) == replace(first, replayed=True)
    assert await perform.once(theirs, CALL, work, refusal) == replace(second, replayed=True)
    assert await endpoints(harness) == 2


async def test_without_a_key_each_request_counts(harness: Harness) -> None:
    for _ in range(2):
        assert not (await once(harness, None, creating(harness))).replayed
    assert await endpoints(harness) == 2


async def test_a_refusal_without_a_key_is_raised(harness: Harness) -> None:
    async def refused(_: Transaction) -> bytes:
        raise NotFound

    with pytest.raises(NotFound):
        await once(harness, None, refused)


async def test_a_refusal_is_remembered_and_leaves_nothing_else(harness: Harness) -> None:
    before = await harness.dump()

    async def refused(transaction: Transaction) -> bytes:
        await creating(harness)(transaction)
        raise EndpointLimitReached

    assert await once(harness, CALL, refused) == IdempotentResponse(b"endpoint_limit_reached")
    again = await once(harness, CALL, creating(harness))
    assert again == IdempotentResponse(b"endpoint_limit_reached", replayed=True)
    after = await harness.dump()
    assert {name for name in after if after[name] != before[name]} == {"idempotency_keys"}


async def test_a_crash_in_the_middle_leaves_nothing_half_done(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await harness.dump()

    async def crash(*_: object) -> None:
        raise KeyboardInterrupt("killed between the change and its memory")

    with monkeypatch.context() as patch:
        patch.setattr(IdempotencyRecords, "remember", crash)
        with pytest.raises(KeyboardInterrupt):
            await once(harness, CALL, creating(harness))
    assert await harness.dump() == before
    assert not (await once(harness, CALL, creating(harness))).replayed
    assert await endpoints(harness) == 1


@pytest.mark.parametrize("late", [CALL, OTHER_BODY])
async def test_a_late_refusal_does_not_overwrite_an_answer_given_meanwhile(
    harness: Harness, late: IdempotentCall
) -> None:
    """A refusal is remembered after its transaction has ended, and someone may be faster."""
    first = await once(harness, CALL, creating(harness))
    await harness.service.perform.remember(harness.owner, late, b"late refusal")
    assert await once(harness, CALL, creating(harness)) == replace(first, replayed=True)


async def test_work_of_several_transactions_is_recalled_once_it_is_remembered(
    harness: Harness,
) -> None:
    perform, pipeline = harness.service.perform, harness.pipeline
    assert await perform.recall(pipeline, CALL) is None
    # As after a crash: the key is taken, the answer is not there yet, so the work is done again.
    assert await perform.recall(pipeline, CALL) is None
    with pytest.raises(IdempotencyKeyReused):
        await perform.recall(pipeline, OTHER_BODY)
    await perform.remember(pipeline, CALL, b"first")
    await perform.remember(pipeline, CALL, b"second")
    assert await perform.recall(pipeline, CALL) == IdempotentResponse(b"first", replayed=True)


async def test_a_remembered_answer_is_sealed_and_not_shown(harness: Harness) -> None:
    answer = await once(harness, CALL, creating(harness))
    assert answer.content.startswith(b"whsec_")
    assert answer.content.decode() not in repr(await harness.dump()) + repr(answer)


@dataclass
class ContendedStore:
    """The real store, whose first transactions lose to someone else when they commit."""

    store: Store
    losses: int
    tries: int = 0

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        self.tries += 1
        async with self.store.transaction() as transaction:
            yield transaction
            if self.tries <= self.losses:
                raise Contention


@pytest.mark.parametrize("losses", [0, 1, TRIES - 1])
async def test_contention_is_tried_again_and_done_once(harness: Harness, losses: int) -> None:
    store = ContendedStore(harness.store, losses)
    perform = Perform(store, harness.clock, harness.box)  # type: ignore[arg-type]  # only transactions
    account = Factory(harness.ids, harness.clock).account()
    await perform.change(lambda transaction: transaction.accounts.add(account))
    assert store.tries == losses + 1
    assert account in await harness.see(lambda transaction: transaction.accounts.oldest(100))


async def test_contention_without_end_is_given_up(harness: Harness) -> None:
    before = await harness.dump()
    store = ContendedStore(harness.store, TRIES)
    perform = Perform(store, harness.clock, harness.box)  # type: ignore[arg-type]  # only transactions
    account = Factory(harness.ids, harness.clock).account()
    with pytest.raises(Contention):
        await perform.change(lambda transaction: transaction.accounts.add(account))
    assert store.tries == TRIES
    assert await harness.dump() == before
