"""What every store of an inbox must do; a store of your own joins by one more parameter."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from cuepost_receiver import Claim, DeadLetter, InboxStore, SqliteStore
from cuepost_receiver.stores.postgres import PostgresStore
from cuepost_receiver.stores.sql_store import SqlStore
from tests.support.postgres import PostgresServer, fresh_database_sync

Opener = Callable[[], InboxStore]


@pytest.fixture(params=["sqlite", "postgresql"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opener]:
    """Opens the same store again and again, as another process would."""
    stores: list[InboxStore] = []

    def keep(store: InboxStore) -> InboxStore:
        stores.append(store)
        return store

    try:
        if request.param == "sqlite":
            yield lambda: keep(SqliteStore(tmp_path / "inbox.sqlite3"))
        else:
            with fresh_database_sync(request.getfixturevalue("postgres_url")) as url:
                yield lambda: keep(PostgresStore(url))
                for each in stores:
                    each.close()
    finally:
        for each in stores:
            each.close()


@pytest.fixture
def store(opened: Opener) -> InboxStore:
    return opened()


def claimed(store: InboxStore, now: float = 10, until: float = 70) -> Claim:
    claim = store.claim(now, until)
    assert claim is not None
    return claim


def test_an_event_is_added_once(store: InboxStore) -> None:
    assert store.add("a", b"one", 1) is True
    assert store.add("a", b"two", 2) is False
    assert claimed(store).body == b"one"


def test_what_has_been_due_for_longest_is_claimed_first(store: InboxStore) -> None:
    for event_id, now in (("b", 2), ("a", 1), ("c", 3)):
        store.add(event_id, b"", now)
    assert [claimed(store).event_id for _ in range(3)] == ["a", "b", "c"]
    assert store.claim(10, 70) is None


def test_nothing_is_claimed_before_it_is_due(store: InboxStore) -> None:
    store.add("a", b"", 5)
    assert store.claim(4.9, 70) is None
    assert store.claim(5, 70) is not None


def test_an_event_under_lease_is_given_to_no_other(store: InboxStore) -> None:
    store.add("a", b"", 1)
    first = claimed(store, now=10, until=70)
    assert store.claim(69, 130) is None
    second = claimed(store, now=70, until=130)
    assert (first.attempt, second.attempt) == (1, 2)
    assert first.lease != second.lease


def test_who_lost_the_lease_changes_nothing(store: InboxStore) -> None:
    store.add("a", b"", 1)
    lost = claimed(store, now=10, until=11)
    held = claimed(store, now=12, until=72)
    assert [
        store.renew(lost, 99),
        store.finish(lost, 13),
        store.postpone(lost, 13, "x"),
        store.bury(lost, 13, "x"),
    ] == [False] * 4
    assert store.counts() == {"working": 1}
    assert store.finish(held, 13) is True
    assert store.finish(held, 14) is False


def test_a_renewed_lease_holds_for_longer(store: InboxStore) -> None:
    store.add("a", b"", 1)
    claim = claimed(store, now=10, until=20)
    assert store.renew(claim, 40) is True
    assert store.claim(39, 99) is None
    assert store.finish(claim, 39) is True


def test_a_finished_event_is_remembered_and_never_due_again(store: InboxStore) -> None:
    store.add("a", b"", 1)
    store.finish(claimed(store), 11)
    assert store.add("a", b"", 12) is False
    assert store.claim(10**9, 10**9 + 1) is None
    assert store.counts() == {"done": 1}


def test_a_postponed_event_comes_back_with_its_count(store: InboxStore) -> None:
    store.add("a", b"body", 1)
    assert store.postpone(claimed(store), 50, "ValueError: no") is True
    assert store.claim(49, 99) is None
    again = claimed(store, now=50, until=99)
    assert (again.attempt, again.body) == (2, b"body")


def test_a_dead_letter_keeps_its_body_and_its_reason(store: InboxStore) -> None:
    store.add("a", b"body", 1)
    assert store.bury(claimed(store), 20, "ValueError: no") is True
    assert store.dead_letters(10) == [DeadLetter("a", 1, "ValueError: no", 20.0, b"body")]
    assert store.claim(10**9, 10**9 + 1) is None
    assert store.add("a", b"", 30) is False


def test_dead_letters_are_listed_from_the_oldest(store: InboxStore) -> None:
    for event_id, now in (("a", 1), ("b", 2), ("c", 3)):
        store.add(event_id, b"", now)
    for ended in (30, 20, 10):
        store.bury(claimed(store), ended, "x")
    assert [each.event_id for each in store.dead_letters(2)] == ["c", "b"]


def test_a_revived_letter_starts_again(store: InboxStore) -> None:
    store.add("a", b"body", 1)
    store.bury(claimed(store), 20, "x")
    assert store.revive("a", 30) is True
    assert store.revive("a", 30) is False
    again = claimed(store, now=30)
    assert (again.attempt, again.body) == (1, b"body")


def test_a_discarded_letter_is_remembered(store: InboxStore) -> None:
    store.add("a", b"body", 1)
    store.bury(claimed(store), 20, "x")
    assert (store.discard("a", 30), store.discard("a", 30)) == (True, False)
    assert store.dead_letters(10) == []
    assert store.add("a", b"", 40) is False


def test_only_what_ended_long_ago_is_forgotten(store: InboxStore) -> None:
    for event_id in ("done", "done lately", "dead", "waiting"):
        store.add(event_id, b"", 1)
    claims = {each.event_id: each for each in (claimed(store) for _ in range(4))}
    store.finish(claims["done"], 20)
    store.finish(claims["done lately"], 40)
    store.bury(claims["dead"], 20, "x")
    store.postpone(claims["waiting"], 20, "x")
    assert store.forget(30) == 1
    assert store.counts() == {"done": 1, "dead": 1, "waiting": 1}
    assert store.add("done", b"", 50) is True


def test_what_was_kept_is_there_for_the_next_process(opened: Opener) -> None:
    first = opened()
    first.add("a", b"\x00body", 1)
    first.close()
    assert claimed(opened()).body == b"\x00body"


def test_a_store_can_be_used_again_after_it_was_closed(store: InboxStore) -> None:
    store.add("a", b"", 1)
    store.close()
    store.close()
    assert store.add("a", b"", 2) is False


def test_many_at_once_claim_each_event_once(opened: Opener) -> None:
    stores = [opened() for _ in range(4)]
    for number in range(40):
        stores[0].add(str(number), b"", number)
    together = threading.Barrier(8)

    def drain(store: InboxStore) -> list[str]:
        together.wait(30)
        found = []
        while claim := store.claim(1_000, 2_000):
            found.append(claim.event_id)
        return found

    with ThreadPoolExecutor(8) as pool:
        lists = pool.map(drain, stores * 2)
        taken = [event_id for found in lists for event_id in found]
    assert sorted(taken) == sorted(map(str, range(40)))


def test_many_at_once_open_the_same_new_store(opened: Opener) -> None:
    together = threading.Barrier(6)

    def add(number: int) -> bool:
        store = opened()
        together.wait(30)
        return store.add("same", b"", number)

    with ThreadPoolExecutor(6) as pool:
        assert sorted(pool.map(add, range(6))) == [False] * 5 + [True]


def test_a_connection_of_another_process_is_inherited(store: InboxStore) -> None:
    assert isinstance(store, SqlStore)
    store.add("a", b"", 1)
    theirs, store._owner = store._connection, 1
    assert store.add("a", b"", 2) is False
    assert store._connection is not theirs
    assert store._inherited == [theirs]
    assert theirs is not None
    theirs.close()


def test_a_file_that_is_no_database_is_an_error_each_time(tmp_path: Path) -> None:
    path = tmp_path / "inbox.sqlite3"
    path.write_text("a letter, and not a database, but long enough to be taken for one" * 20)
    store = SqliteStore(path)
    for _ in range(2):
        with pytest.raises(Exception, match="not a database"):
            store.add("a", b"", 1)


def test_a_database_that_refuses_us_is_an_error_each_time(postgres_url: str) -> None:
    with fresh_database_sync(postgres_url) as url:
        with psycopg.connect(url) as connection:
            connection.execute("CREATE VIEW cuepost_inbox AS SELECT 1")
        store = PostgresStore(url)
        with pytest.raises(psycopg.Error):
            store.add("a", b"", 1)


def test_a_restart_of_the_database_is_not_noticed() -> None:
    with PostgresServer() as server:
        store = PostgresStore(server.url)
        assert store.add("a", b"", 1) is True
        server.restart("immediate")
        assert store.add("a", b"", 2) is False
        server.stop()
        with pytest.raises(psycopg.OperationalError):
            store.add("b", b"", 3)
        server.start()
        assert store.add("b", b"", 4) is True
        store.close()
