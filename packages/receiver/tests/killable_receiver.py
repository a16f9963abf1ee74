"""A receiver that kills itself with SIGKILL: `killable_receiver.py STORE JOURNAL STEP NUMBER`.

STORE is a path or a PostgreSQL URL. STEP is where, NUMBER which time. JOURNAL gets what is done.
"""

import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from cuepost_receiver import Claim, Event, Inbox, InboxStore, RetryPolicy, SqliteStore
from cuepost_receiver.wsgi import WsgiInbox

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwXhyPBKTZYv0="
STEPS = [
    f"{when} {what}"
    for what in ("add", "claim", "effect", "finish", "answer")
    for when in ("before", "after")
]


class Fate:
    """Counts the steps of every thread and strikes at the chosen one."""

    def __init__(self, step: str, number: int) -> None:
        self._step, self._number = step, number
        self._passed: Counter[str] = Counter()
        self._lock = threading.Lock()

    def passes(self, step: str) -> None:
        with self._lock:
            self._passed[step] += 1
            if (step, self._passed[step]) == (self._step, self._number):
                os.kill(os.getpid(), signal.SIGKILL)

    def around(self, what: str, work: Callable[[], Any]) -> Any:
        self.passes(f"before {what}")
        done = work()
        self.passes(f"after {what}")
        return done


class Journal:
    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def write(self, word: str, event_id: str) -> None:
        os.write(self._file, f"{word} {event_id}\n".encode())


def mortal(store: InboxStore, fate: Fate, journal: Journal) -> InboxStore:
    """The store with a step before and after each change of an event."""
    add, claim, finish = store.add, store.claim, store.finish

    def finish_and_tell(claim: Claim, now: float) -> bool:
        done: bool = fate.around("finish", lambda: finish(claim, now))
        journal.write("finished", claim.event_id)
        return done

    def claim_one(now: float, until: float) -> Claim | None:
        fate.passes("before claim")
        found = claim(now, until)
        if found is not None:
            fate.passes("after claim")
        return found

    changed: Any = store
    changed.add = lambda *event: fate.around("add", lambda: add(*event))
    changed.claim = claim_one
    changed.finish = finish_and_tell
    return store


class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True
    request_queue_size = 64


class Quiet(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        """The journal tells."""


def main(place: str, journal_path: str, step: str, number: str) -> None:
    fate, journal = Fate(step, int(number)), Journal(journal_path)

    def handler(event: Event) -> None:
        journal.write("begin", event.id)
        fate.around("effect", lambda: journal.write("effect", event.id))

    store = mortal(open_store(place), fate, journal)
    policy = RetryPolicy(delays=(0.01,) * 1_000)
    inbox = Inbox(store, SECRET, handler, policy=policy, lease_seconds=0.5, poll_seconds=0.05)
    hook = WsgiInbox(inbox)

    def app(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        answer = hook(environ, start_response)
        fate.passes("before answer")
        yield from answer
        fate.passes("after answer")

    with inbox, Server(("127.0.0.1", 0), Quiet) as server:
        server.set_app(app)
        sys.stdout.write(f"{server.server_address[1]}\n")
        sys.stdout.flush()
        server.serve_forever()


def open_store(place: str) -> InboxStore:
    if not place.startswith("postgresql://"):
        return SqliteStore(place)
    from cuepost_receiver.stores.postgres import PostgresStore  # noqa: PLC0415  # it takes a while

    return PostgresStore(place)


if __name__ == "__main__":
    main(*sys.argv[1:])
