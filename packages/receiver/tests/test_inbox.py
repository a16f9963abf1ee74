"""The inbox: answered at once, kept first, handled afterwards, once, and never in vain."""

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cuepost_receiver import Answer, Event, GiveUp, Inbox, RetryPolicy, SqliteStore
from cuepost_receiver.stores.protocol import Claim
from packages.receiver.tests.signing import NOW, OTHER_SECRET, SECRET, Delivery, event_body

PATIENCE = 30.0
ACCEPTED = Answer(200, {"status": "accepted"})
DUPLICATE = Answer(200, {"status": "duplicate"})


class Clock:
    def __init__(self) -> None:
        self.now = float(NOW)

    def __call__(self) -> float:
        return self.now


class Seen:
    """A handler that tells what it got."""

    def __init__(self, answer: Callable[[Event], Any] = lambda event: None) -> None:
        self._events: queue.Queue[Event] = queue.Queue()
        self._answer = answer

    def __call__(self, event: Event) -> Any:
        self._events.put(event)
        return self._answer(event)

    def next(self) -> Event:
        return self._events.get(timeout=PATIENCE)

    @property
    def count(self) -> int:
        return self._events.qsize()


def numbered(number: int, kind: str = "project.completed") -> Delivery:
    event_id = f"0198c0de-7b2c-7f00-8a1b-{number:012d}"
    return Delivery(body=event_body(event_id, kind), event_id=event_id)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "inbox.sqlite3")
    yield store
    store.close()


def opened(store: SqliteStore, handler: Callable[[Event], Any], **more: Any) -> Inbox:
    return Inbox(store, SECRET, handler, **{"clock": Clock(), "poll_seconds": 0.02, **more})


def receive(inbox: Inbox, delivery: Delivery) -> Answer:
    return inbox.receive(delivery.body, delivery.headers)


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < deadline, what
        pause.wait(0.01)


def one_claim(store: SqliteStore) -> Claim:
    claim = store.claim(NOW + 1e6, NOW + 2e6)
    assert claim is not None
    return claim


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


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(1)], ids=["error", "exit"])
def test_a_failing_handler_is_tried_again_with_pauses_then_buried(
    store: SqliteStore, error: BaseException
) -> None:
    def fail(event: Event) -> None:
        raise error

    clock = Clock()
    seen = Seen(fail)
    policy = RetryPolicy(delays=(10, 100), jitter=0)
    with opened(store, seen, clock=clock, policy=policy) as inbox:
        receive(inbox, numbered(1))
        for pause in (9.9, 0.1, 99.9, 0.1):
            if pause < 1:
                clock.now += pause
            else:
                seen.next()
                wait_until(lambda: store.counts() == {"waiting": 1}, "postponed")
                clock.now += pause
                assert seen.count == 0
        seen.next()
        wait_until(lambda: store.counts() == {"dead": 1}, "buried")
        [letter] = inbox.dead_letters()
        assert (letter.attempts, letter.error) == (3, f"{type(error).__name__}: {error}")


def test_a_handler_may_give_up_at_once_and_the_letter_be_revived(store: SqliteStore) -> None:
    answers: list[BaseException | None] = [GiveUp("no such project"), None]

    def handler(event: Event) -> None:
        answer = answers.pop(0)
        if answer:
            raise answer

    seen = Seen(handler)
    with opened(store, seen) as inbox:
        receive(inbox, numbered(1))
        wait_until(lambda: store.counts() == {"dead": 1}, "buried")
        assert inbox.dead_letters()[0].error == "GiveUp: no such project"
        assert receive(inbox, numbered(1)) == DUPLICATE
        assert inbox.revive(numbered(1).event_id) is True
        wait_until(lambda: store.counts() == {"done": 1}, "done")
        assert inbox.revive(numbered(1).event_id) is False
    assert seen.count == 2


def test_a_dead_letter_can_be_discarded(store: SqliteStore) -> None:
    def handler(event: Event) -> None:
        raise GiveUp("never")

    with opened(store, handler) as inbox:
        receive(inbox, numbered(1))
        wait_until(lambda: store.counts() == {"dead": 1}, "buried")
        assert inbox.discard(numbered(1).event_id) is True
    assert store.counts() == {"done": 1}


def test_an_event_that_kills_every_process_is_buried_in_the_end(store: SqliteStore) -> None:
    seen = Seen()
    policy = RetryPolicy(delays=(10,))
    good = numbered(1)
    store.add(good.event_id, good.body, NOW)
    for _ in range(policy.attempts):
        assert store.claim(NOW, NOW - 1) is not None
    with opened(store, seen, policy=policy) as inbox:
        wait_until(lambda: store.counts() == {"dead": 1}, "buried")
        assert "process ended" in inbox.dead_letters()[0].error
    assert seen.count == 0


def test_a_body_that_became_unreadable_in_the_store_is_buried(store: SqliteStore) -> None:
    store.add("a", b"no event", NOW)
    with opened(store, Seen()):
        wait_until(lambda: store.counts() == {"dead": 1}, "buried")


class RenewalsCounted(SqliteStore):
    renewals = 0

    def renew(self, claim: Claim, until: float) -> bool:
        self.renewals += 1
        return super().renew(claim, until)


def test_a_lease_is_kept_while_its_handler_runs(tmp_path: Path) -> None:
    store = RenewalsCounted(tmp_path / "inbox.sqlite3")
    release = threading.Event()
    seen = Seen(lambda event: release.wait(PATIENCE))
    with (
        opened(store, seen, clock=time.time, lease_seconds=0.3, workers=1) as inbox,
        opened(store, seen, clock=time.time, lease_seconds=0.3, workers=1),
    ):
        fresh = Delivery(timestamp=int(time.time()))
        assert receive(inbox, fresh) == ACCEPTED
        seen.next()
        wait_until(lambda: store.renewals > 9, "three leases long")
        assert seen.count == 0
        release.set()
        wait_until(lambda: store.counts() == {"done": 1}, "done")


def test_a_lost_lease_is_said(store: SqliteStore, caplog: pytest.LogCaptureFixture) -> None:
    def steal(event: Event) -> None:
        one_claim(store)

    with opened(store, steal, workers=1) as inbox:
        receive(inbox, numbered(1))
        wait_until(lambda: "may run twice" in caplog.text, "a warning")


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


def test_closing_waits_for_a_running_handler_and_says_when_it_takes_too_long(
    store: SqliteStore,
) -> None:
    release = threading.Event()
    seen = Seen(lambda event: release.wait(PATIENCE))
    inbox = opened(store, seen)
    receive(inbox, numbered(1))
    seen.next()
    assert inbox.close(timeout=0.05) is False
    release.set()
    wait_until(lambda: store.counts() == {"done": 1}, "done")


def test_a_store_that_fails_is_answered_with_try_again(tmp_path: Path) -> None:
    inbox = opened(SqliteStore(tmp_path / "nowhere" / "inbox.sqlite3"), Seen())
    assert receive(inbox, numbered(1)).status == 503


def test_a_store_that_comes_back_is_used_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "later"
    seen = Seen()
    with opened(SqliteStore(folder / "inbox.sqlite3"), seen, lease_seconds=0.05) as inbox:
        wait_until(lambda: caplog.text.count("the inbox's store failed") > 5, "complaints")
        folder.mkdir()
        assert receive(inbox, numbered(1)) == ACCEPTED
        seen.next()


@pytest.mark.parametrize(
    "secrets",
    [[], "whsec_?", list, lambda: 1 / 0],
    ids=["none", "malformed", "none found", "look-up fails"],
)
def test_a_misconfigured_receiver_asks_to_be_tried_again(store: SqliteStore, secrets: Any) -> None:
    inbox = Inbox(store, secrets, Seen(), clock=Clock())
    answer = receive(inbox, numbered(1))
    assert (answer.status, answer.is_accepted) == (500, False)


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


def test_the_answer_stands_when_no_thread_can_be_started(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    inbox = opened(store, Seen())
    assert receive(inbox, numbered(1)) == ACCEPTED
    assert store.counts() == {"waiting": 1}


def test_a_long_error_is_cut_and_pauses_have_a_little_chance(store: SqliteStore) -> None:
    def fail(event: Event) -> None:
        raise GiveUp("x" * 5_000 + "\x00")

    with opened(store, fail) as inbox:
        receive(inbox, numbered(1))
        wait_until(lambda: store.counts() == {"dead": 1}, "buried")
        assert len(inbox.dead_letters()[0].error) == 1_000
    policy = RetryPolicy()
    assert policy.attempts == 7
    pauses = [policy.pause_after(attempt) for attempt in range(1, 8)]
    assert all(
        pause is not None and delay <= pause <= delay * 1.1
        for pause, delay in zip(pauses, policy.delays, strict=False)
    )
    assert pauses[-1] is None


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
