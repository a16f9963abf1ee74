"""Huey on SQLite, with requests, in threads."""

import threading
import time
from collections.abc import Sequence

import requests
from huey import SqliteHuey

from benchmarks.peers.signing import BROKER, TIMEOUT_SECONDS, URL, Job, due_times, signed_headers

huey = SqliteHuey("bench", filename=BROKER, results=False, journal_mode="wal", fsync=True)
_of_thread = threading.local()


@huey.task()
def deliver(event_id: str, body: str) -> None:
    content = body.encode()
    headers = signed_headers(event_id, content)
    _session().post(URL, data=content, headers=headers, timeout=TIMEOUT_SECONDS).raise_for_status()


def _session() -> requests.Session:
    if not hasattr(_of_thread, "session"):
        _of_thread.session = requests.Session()
        _of_thread.session.trust_env = False
    session: requests.Session = _of_thread.session
    return session


def enqueue(jobs: Sequence[Job], rate: float) -> dict[str, float]:
    began = {}
    waits = due_times(len(jobs), rate) if rate else None
    for event_id, body in jobs:
        if waits is not None:
            time.sleep(next(waits))
        began[event_id] = time.time()
        deliver(event_id, body)
    return began
