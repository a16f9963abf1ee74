"""What the inbox does when a handler, a store, a lease or its own settings fail."""

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from cuepost_receiver import Event, GiveUp, Inbox, RetryPolicy, SqliteStore
from cuepost_receiver.stores.protocol import Claim
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
from packages.receiver.tests.signing import NOW, Delivery


class RenewalsCounted(SqliteStore):
    renewals = 0

    def renew(self, claim: Claim, until: float) -> bool:
        self.renewals += 1
        return super().renew(claim, until)


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


class Unforgetting(SqliteStore):
    def forget(self, before: float) -> int:
        raise OSError("disk full")


def test_a_store_that_cannot_forget_goes_on_receiving(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    seen = Seen()
    with opened(Unforgetting(tmp_path / "inbox.sqlite3"), seen, lease_seconds=0.05) as inbox:
        wait_until(lambda: "disk full" in caplog.text, "a complaint")
        assert receive(inbox, numbered(1)) == ACCEPTED
        seen.next()
