"""Attempts: with everything that was measured and answered."""

from dataclasses import replace

from cuepost.domain.attempt import Attempt, Outcome, Timings, TlsFault
from cuepost.domain.delivery import Trigger
from cuepost.ports.history import MOST_ATTEMPTS
from tests.support.records import Records
from tests.support.store_rows import AnyStore, introduce


async def add(store: AnyStore, *attempts: Attempt) -> None:
    async with store.transaction() as transaction:
        await introduce(transaction, *(each.account_id for each in attempts))
        await transaction.attempts.add(attempts)


async def test_an_attempt_comes_back_as_it_was_added(store: AnyStore, records: Records) -> None:
    delivery = records.delivery(records.id())
    bare = records.attempt(
        delivery,
        budget=1,
        number=2,
        timings=Timings(),
        signed_with=(),
        request_headers=(),
        response_status=None,
        response_headers=(),
        response_body=b"",
        response_truncated=False,
        outcome=Outcome.TIMEOUT,
    )
    attempts = [records.attempt(delivery), bare] + [
        records.attempt(delivery, budget=2 + place, number=2, trigger=trigger, outcome=outcome)
        for place, (trigger, outcome) in enumerate(
            (trigger, outcome) for trigger in Trigger for outcome in Outcome
        )
    ]
    attempts += [
        records.attempt(
            delivery, budget=100, number=number, outcome=Outcome.TLS_ERROR, tls_fault=fault
        )
        for number, fault in enumerate(TlsFault, start=1)
    ]
    await add(store, *attempts)
    await add(store)

    async with store.snapshot() as transaction:
        found = await transaction.attempts.of_delivery(delivery.account_id, delivery.id)
    assert found == attempts


async def test_attempts_come_in_the_order_in_which_they_were_made(
    store: AnyStore, records: Records
) -> None:
    delivery, other = records.delivery(records.id()), records.delivery(records.id())
    first = records.attempt(delivery)
    attempts = [
        replace(first, budget=budget, number=number) for budget in (1, 2, 10) for number in (1, 2)
    ]
    await add(store, *reversed(attempts), records.attempt(other))

    async with store.snapshot() as transaction:
        found = await transaction.attempts.of_delivery(delivery.account_id, delivery.id)
        nothing = await transaction.attempts.of_delivery(delivery.account_id, records.id())
    assert [found, nothing] == [attempts, []]


async def test_the_last_attempt_of_each_delivery_is_found(
    store: AnyStore, records: Records
) -> None:
    account_id = records.id()
    deliveries = [records.delivery(account_id) for _ in range(3)]
    of = {
        each.id: [
            records.attempt(each, budget=budget, number=number)
            for budget, number in ((1, 1), (1, 2), (2, 1))[: 3 - place]
        ]
        for place, each in enumerate(deliveries)
    }
    await add(store, *(attempt for each in of.values() for attempt in each))

    async with store.snapshot() as transaction:
        chosen = [deliveries[0].id, deliveries[1].id, records.id()]
        found = await transaction.attempts.last_of(account_id, chosen)
        nothing = await transaction.attempts.last_of(account_id, [])
    assert found == {each: of[each][-1] for each in chosen[:2]}
    assert nothing == {}


async def test_attempts_that_do_not_count_stand_where_they_began_and_are_the_last_only_if_alone(
    store: AnyStore, records: Records
) -> None:
    account_id = records.id()
    tried, lost = records.delivery(account_id), records.delivery(account_id)
    first = records.attempt(tried)
    records.clock.advance(1)
    interrupted = records.attempt(tried, budget=0, outcome=Outcome.INTERRUPTED)
    records.clock.advance(1)
    second = records.attempt(tried, number=2)
    records.clock.advance(1)
    superseded = records.attempt(tried, budget=0, number=2, outcome=Outcome.SUPERSEDED)
    of_lost = [
        records.attempt(lost, budget=0, number=number, outcome=Outcome.INTERRUPTED)
        for number in (1, 2)
    ]
    await add(store, superseded, second, interrupted, first, *of_lost)

    async with store.snapshot() as transaction:
        made = await transaction.attempts.of_delivery(account_id, tried.id)
        last = await transaction.attempts.last_of(account_id, [tried.id, lost.id])
        figures = await transaction.attempts.figures_of(account_id, [tried.id])
    assert made == [first, interrupted, second, superseded]
    assert last == {tried.id: second, lost.id: of_lost[1]}
    assert figures[-1].number == second.number
    assert figures[-1].outcome is second.outcome


async def test_of_very_many_attempts_the_newest_are_found(
    store: AnyStore, records: Records
) -> None:
    delivery = records.delivery(records.id())
    first = records.attempt(delivery)
    attempts = [
        replace(first, budget=budget, number=number)
        for budget in range(1, MOST_ATTEMPTS)
        for number in (1, 2, 3)
    ]
    await add(store, *attempts)
    async with store.snapshot() as transaction:
        found = await transaction.attempts.of_delivery(delivery.account_id, delivery.id)
    assert found == attempts[-MOST_ATTEMPTS:]
