"""The inbox: answered at once, kept first, handled afterwards, once, and never in vain."""

import asyncio
import logging
import threading
import time

import pytest

from cuepost_receiver import Event, Inbox, SqliteStore
from packages.receiver.tests.inbox_harness import (
    ACCEPTED,
    DUPLICATE,
    PATIENCE,
    Clock,
    Seen,
    numbered,
    one_claim,
    opened,
    receive,
    wait_until,
)
from packages.receiver.tests.signing import NOW, OTHER_SECRET, SECRET, Delivery, event_body


def test_a_delivery_is_kept_answered_and_handled(store: SqliteStore) -> None:
    seen = Seen()
    with opened(store, seen) as inbox:
        assert receive(inbox, numbered(1)) == ACCEPTED
        assert seen.next().type == "project.completed"
        wait_until(lambda: store.counts() == {"done": 1}, "done")


def test_a_duplicate_is_acknowledged_and_not_handled_again(store: SqliteStore) -> None:
    seen = Seen()
    with opened(store, seen) as inbox:
        assert receive(inbox, numbered(1)) == ACCEPTED
        assert receive(inbox, numbered(1)) == DUPLICATE
        seen.next()
        wait_until(lambda: store.counts() == {"done": 1}, "done")
        assert receive(inbox, numbered(1)) == DUPLICATE
        receive(inbox, numbered(2))
        assert seen.next().id == numbered(2).event_id
    assert seen.count == 0


def test_events_out_of_order_are_handled_each_once(store: SqliteStore) -> None:
    seen = Seen()
    order = [5, 3, 5, 1, 4, 1, 2, 3]
    with opened(store, seen) as inbox:
        answers = [receive(inbox, numbered(number)) for number in order]
        handled = {seen.next().id for _ in range(5)}
        wait_until(lambda: store.counts() == {"done": 5}, "done")
    assert handled == {numbered(number).event_id for number in range(1, 6)}
    assert [answer == DUPLICATE for answer in answers] == [
        number in order[:place] for place, number in enumerate(order)
    ]


def test_what_is_not_verified_is_neither_kept_nor_handled(store: SqliteStore) -> None:
    seen = Seen()
    with opened(store, seen) as inbox:
        good = numbered(1)
        forged = inbox.receive(good.body + b" ", good.headers)
        stranger = receive(inbox, Delivery(secrets=[OTHER_SECRET]))
        old = receive(inbox, Delivery(timestamp=NOW - 301))
        shapeless = receive(inbox, Delivery(body=b"signed, and no event"))
        another = receive(inbox, Delivery(body=event_body("another")))
    reasons = [each.content["error"] for each in (forged, stranger, old, shapeless, another)]
    assert reasons == ["no_match", "no_match", "too_old", "not_an_event", "id_mismatch"]
    assert {each.status for each in (forged, stranger, old, shapeless, another)} == {400}
    assert (store.counts(), seen.count) == ({}, 0)


def test_it_answers_while_a_handler_takes_its_time(store: SqliteStore) -> None:
    entered, release = threading.Semaphore(0), threading.Event()

    def slow(event: Event) -> None:
        entered.release()
        assert release.wait(PATIENCE)

    with opened(store, slow, workers=1) as inbox:
        receive(inbox, numbered(1))
        assert entered.acquire(timeout=PATIENCE)
        began = time.monotonic()
        assert [receive(inbox, numbered(number)) for number in range(2, 12)] == [ACCEPTED] * 10
        assert time.monotonic() - began < 5
        assert store.counts() == {"working": 1, "waiting": 10}
        release.set()
        wait_until(lambda: store.counts() == {"done": 11}, "done")


def test_a_test_event_goes_to_its_own_handler(store: SqliteStore) -> None:
    seen, tests = Seen(), Seen()
    with opened(store, seen, on_test=tests) as inbox:
        assert receive(inbox, numbered(1, "webhook.test")) == ACCEPTED
        assert tests.next().is_test
    assert seen.count == 0


def test_a_test_event_without_a_handler_is_acknowledged(store: SqliteStore) -> None:
    seen = Seen()
    with opened(store, seen) as inbox:
        assert receive(inbox, numbered(1, "webhook.test")) == ACCEPTED
        wait_until(lambda: store.counts() == {"done": 1}, "done")
    assert seen.count == 0


def test_a_coroutine_may_be_the_handler(store: SqliteStore) -> None:
    seen = Seen()

    async def handler(event: Event) -> None:
        await asyncio.to_thread(seen, event)

    with opened(store, handler) as inbox:
        receive(inbox, numbered(1))
        assert seen.next().project_id is not None
        wait_until(lambda: store.counts() == {"done": 1}, "done")


def test_left_over_work_is_taken_up_at_the_start(store: SqliteStore) -> None:
    left = opened(store, Seen(), workers=0)
    left.start()
    assert receive(left, numbered(1)) == ACCEPTED
    seen = Seen()
    with opened(store, seen):
        assert seen.next().id == numbered(1).event_id


def test_a_process_of_its_own_can_do_the_handling(store: SqliteStore) -> None:
    seen, stop = Seen(), threading.Event()
    inbox = opened(store, seen, workers=0)
    runner = threading.Thread(target=inbox.run, args=(stop,))
    runner.start()
    receive(inbox, numbered(1))
    assert seen.next().id == numbered(1).event_id
    stop.set()
    runner.join(PATIENCE)
    assert not runner.is_alive()


def test_secrets_can_be_looked_up_at_each_delivery(store: SqliteStore) -> None:
    trusted = [OTHER_SECRET]
    inbox = Inbox(store, lambda: trusted, Seen(), clock=Clock(), workers=0)
    assert receive(inbox, numbered(1)).status == 400
    trusted.append(SECRET)
    assert receive(inbox, numbered(1)) == ACCEPTED


def test_secrets_may_be_any_iterable(store: SqliteStore) -> None:
    inbox = Inbox(store, iter([OTHER_SECRET, SECRET]), Seen(), clock=Clock(), workers=0)
    assert [receive(inbox, numbered(each)).status for each in (1, 2)] == [200, 200]


def test_ids_are_remembered_for_31_days_at_least(store: SqliteStore) -> None:
    clock = Clock()
    with pytest.raises(ValueError, match="at least 31 days"):
        Inbox(store, SECRET, Seen(), memory_days=30)
    seen = Seen()
    with opened(store, seen, clock=clock, memory_days=31) as inbox:
        receive(inbox, numbered(1))
        wait_until(lambda: store.counts() == {"done": 1}, "done")
        clock.now += 31 * 86_400
        late = numbered(1)
        again = Delivery(late.body, late.event_id, int(clock.now))
        assert (inbox.forget(), receive(inbox, again)) == (0, DUPLICATE)
        clock.now += 1
        assert inbox.forget() == 1


def test_old_ids_are_forgotten_by_themselves(store: SqliteStore) -> None:
    store.add("old", b"", NOW)
    store.finish(one_claim(store), NOW - 36 * 86_400)
    with opened(store, Seen(), lease_seconds=0.05):
        wait_until(lambda: store.counts() == {}, "forgotten")


def test_nothing_secret_is_logged(store: SqliteStore, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    seen = Seen()
    with opened(store, seen, on_test=None) as inbox:
        receive(inbox, numbered(1))
        receive(inbox, Delivery(secrets=[OTHER_SECRET]))
        receive(inbox, numbered(2, "webhook.test"))
        seen.next()
        wait_until(lambda: store.counts() == {"done": 2}, "done")
    assert SECRET[6:] not in caplog.text
    assert "render_timeout" not in caplog.text
