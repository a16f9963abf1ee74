"""Celery on Redis, with requests in a pool of threads, since jobs wait for the network."""

import threading
import time
from collections.abc import Sequence

import requests
from celery import Celery

from benchmarks.peers.signing import BROKER, TIMEOUT_SECONDS, URL, Job, due_times, signed_headers

app = Celery("bench", broker=BROKER)
app.conf.update(
    task_acks_late=True,
    task_ignore_result=True,
    worker_prefetch_multiplier=8,
    broker_connection_retry_on_startup=True,
)
_of_thread = threading.local()


@app.task
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
    with app.producer_pool.acquire(block=True) as producer:
        for event_id, body in jobs:
            if waits is not None:
                time.sleep(next(waits))
            began[event_id] = time.time()
            deliver.apply_async((event_id, body), producer=producer)
    return began
