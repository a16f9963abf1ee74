"""A complete receiver: verifies, deduplicates and stores events, responds, handles them later."""

import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Self

from cuepost_receiver.handling import Handler, Handling, RetryPolicy
from cuepost_receiver.header_reading import Headers
from cuepost_receiver.refusal import Reason, VerificationFailed
from cuepost_receiver.stores.protocol import DeadLetter, InboxStore
from cuepost_receiver.verification import TOLERANCE_SECONDS, Verified, verify
from cuepost_receiver.workers import Workers

logger = logging.getLogger("cuepost_receiver")

DAY = 86_400.0
# A manual retry has the same id and is possible for 30 days.
SHORTEST_MEMORY_DAYS = 31
DEFAULT_POLICY = RetryPolicy()
CONFIGURATION_FAULTS = {Reason.NO_SECRETS, Reason.BAD_SECRET, Reason.BAD_TOLERANCE}

Secrets = str | Iterable[str] | Callable[[], str | Iterable[str]]


@dataclass(frozen=True, slots=True)
class Answer:
    """The response: a status, and a short JSON object that the delivery history shows."""

    status: int
    content: dict[str, str]

    @property
    def body(self) -> bytes:
        return json.dumps(self.content).encode()

    @property
    def is_accepted(self) -> bool:
        return self.status < 300


class Inbox:
    """Takes raw requests, responds at once, and calls `handler` afterwards, at least once.

    `secrets` may be a function, so that a rotation needs no restart. `on_test` gets the test
    events; without it they are acknowledged and logged. `workers=0` leaves the handling to other
    processes on the same store, which call `run`.
    """

    def __init__(
        self,
        store: InboxStore,
        secrets: Secrets,
        handler: Handler,
        *,
        on_test: Handler | None = None,
        tolerance: float = TOLERANCE_SECONDS,
        policy: RetryPolicy = DEFAULT_POLICY,
        workers: int = 4,
        memory_days: float = 35,
        lease_seconds: float = 60.0,
        poll_seconds: float = 1.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if memory_days < SHORTEST_MEMORY_DAYS:
            raise ValueError(f"ids must be remembered for at least {SHORTEST_MEMORY_DAYS} days")
        self.store = store
        self._secrets = secrets if callable(secrets) or isinstance(secrets, str) else list(secrets)
        self._tolerance = tolerance
        self._memory_seconds = memory_days * DAY
        self._clock = clock
        self._handling = Handling(store, handler, on_test, policy, lease_seconds, clock)
        self._poll_seconds = poll_seconds
        self._thread_count = workers
        self._starting = threading.Lock()
        self._workers: Workers | None = None
        self._process = 0

    def receive(self, body: bytes, headers: Headers) -> Answer:
        """Never raises; an event that gets 2xx is stored and will be handled."""
        try:
            verified = verify(
                body, headers, self._trusted(), now=self._clock(), tolerance=self._tolerance
            )
            verified.event()
        except VerificationFailed as failure:
            return _refused(failure)
        return self._keep(verified)

    def start(self) -> None:
        """Start handling in this process; a second call has no effect."""
        if self._thread_count == 0:
            return
        with self._starting:
            # Threads do not survive a fork.
            if self._workers is None or self._process != os.getpid():
                self._workers, self._process = self._make_workers(self._thread_count), os.getpid()
                self._workers.start()

    def close(self, timeout: float = 30.0) -> bool:
        """Wait for running handlers; False if some did not end, which will run again elsewhere."""
        with self._starting:
            workers, self._workers = self._workers, None
        ended = workers is None or self._process != os.getpid() or workers.stop(timeout)
        if ended:
            self.store.close()
        return ended

    def run(self, stop: threading.Event | None = None, *, workers: int | None = None) -> None:
        """Handle events until `stop` is set, for a dedicated worker process."""
        pool = self._make_workers(workers or self._thread_count or 1)
        pool.start()
        try:
            (stop or threading.Event()).wait()
        finally:
            pool.stop(30.0)

    def dead_letters(self, limit: int = 100) -> list[DeadLetter]:
        return self.store.dead_letters(limit)

    def revive(self, event_id: str) -> bool:
        """Retry a dead letter with a full set of attempts; False if the id is unknown."""
        revived = self.store.revive(event_id, self._clock())
        self._wake()
        return revived

    def discard(self, event_id: str) -> bool:
        return self.store.discard(event_id, self._clock())

    def forget(self) -> int:
        """Drop expired ids; this runs automatically every hour."""
        return self.store.forget(self._clock() - self._memory_seconds)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _keep(self, verified: Verified) -> Answer:
        try:
            is_new = self.store.add(verified.id, verified.body, self._clock())
        except Exception:
            logger.exception("event %s could not be stored", verified.id)
            return Answer(503, {"error": "store_unavailable", "message": "Try again later."})
        self._wake()
        return Answer(200, {"status": "accepted" if is_new else "duplicate"})

    def _trusted(self) -> str | Iterable[str]:
        if not callable(self._secrets):
            return self._secrets
        try:
            return self._secrets()
        except Exception:
            logger.exception("the signing secrets could not be read")
            raise VerificationFailed(Reason.NO_SECRETS) from None

    def _wake(self) -> None:
        try:
            self.start()
        except RuntimeError:
            # The process is ending; the event is stored for the next one.
            logger.exception("no thread could be started")
        if self._workers is not None:
            self._workers.wake()

    def _make_workers(self, threads: int) -> Workers:
        return Workers(
            self._handling, self.forget, threads=threads, poll_seconds=self._poll_seconds
        )


def _refused(failure: VerificationFailed) -> Answer:
    logger.warning("a delivery was refused: %s", failure.reason)
    if failure.reason in CONFIGURATION_FAULTS:
        # The sender cannot fix this; a 5xx status makes it retry.
        return Answer(500, {"error": "receiver_misconfigured", "message": "Try again later."})
    return Answer(400, {"error": failure.reason.value, "message": str(failure)})
