"""Signs the body of a job, as every peer does, by the Standard Webhooks convention.

It runs in the peers' environment, so it uses only the standard library.
"""

import base64
import hmac
import os
import time
from collections.abc import Iterator, Sequence

Job = tuple[str, str]
"""An event's id and its body."""

URL = os.environ.get("BENCH_URL", "")
BROKER = os.environ.get("BENCH_BROKER", "")
_KEY = base64.b64decode(os.environ.get("BENCH_SECRET", "").removeprefix("whsec_"))
TIMEOUT_SECONDS = 15


def signed_headers(event_id: str, body: bytes) -> dict[str, str]:
    timestamp = str(int(time.time()))
    digest = hmac.digest(_KEY, f"{event_id}.{timestamp}.".encode() + body, "sha256")
    return {
        "content-type": "application/json; charset=utf-8",
        "webhook-id": event_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": "v1," + base64.b64encode(digest).decode(),
    }


def due_times(count: int, rate: float) -> Iterator[float]:
    """The pause before each request that gives this rate per second."""
    began = time.monotonic()
    for number in range(count):
        yield max(0.0, began + number / rate - time.monotonic())


def pieces(jobs: Sequence[Job], size: int = 100) -> Iterator[Sequence[Job]]:
    for first in range(0, len(jobs), size):
        yield jobs[first : first + size]
