"""Threads that handle due events, and one that renews leases and drops expired ids."""

import logging
import threading
import time
from collections.abc import Callable
from functools import partial

from cuepost_receiver.handling import Handling
from cuepost_receiver.stores.protocol import Claim

logger = logging.getLogger("cuepost_receiver")

FORGET_EVERY_SECONDS = 3_600.0


class Workers:
    """The threads of one process."""

    def __init__(
        self,
        handling: Handling,
        forget: Callable[[], object],
        *,
        threads: int,
        poll_seconds: float,
    ) -> None:
        self._handling = handling
        self._forget = forget
        self._poll_seconds = poll_seconds
        self._changed = threading.Condition()
        self._news = 0
        self._stopping = threading.Event()
        self._active: dict[str, Claim] = {}
        self._threads = [
            threading.Thread(target=self._work, name=f"cuepost inbox {number}", daemon=True)
            for number in range(threads)
        ]
        self._keeper = threading.Thread(target=self._keep, name="cuepost leases", daemon=True)

    def start(self) -> None:
        for thread in (*self._threads, self._keeper):
            thread.start()

    def wake(self) -> None:
        """Wake the threads, because an event is due."""
        with self._changed:
            self._news += 1
            self._changed.notify_all()

    def stop(self, timeout: float) -> bool:
        """Wait for running handlers and start no new ones; False if they did not end in time."""
        self._stopping.set()
        with self._changed:
            self._changed.notify_all()
        deadline = time.monotonic() + timeout
        for thread in (*self._threads, self._keeper):
            thread.join(max(deadline - time.monotonic(), 0))
        return not any(thread.is_alive() for thread in self._threads)

    def _work(self) -> None:
        while not self._stopping.is_set():
            news = self._news
            try:
                found = self._handle_one()
            except Exception:
                # The store may be available again later; the event is still stored.
                logger.exception("the inbox's store failed")
                found = False
            if not found:
                self._rest(news)

    def _handle_one(self) -> bool:
        claim = self._handling.claim()
        if claim is None:
            return False
        with self._changed:
            self._active[claim.lease] = claim
        try:
            self._handling.handle(claim)
        finally:
            with self._changed:
                del self._active[claim.lease]
                self._changed.notify_all()
        return True

    def _rest(self, seen: int) -> None:
        with self._changed:
            self._changed.wait_for(
                lambda: self._news != seen or self._stopping.is_set(), self._poll_seconds
            )

    def _keep(self) -> None:
        forget_at = time.monotonic()
        while not self._is_over(self._handling.lease_seconds / 3):
            if time.monotonic() >= forget_at:
                forget_at = time.monotonic() + FORGET_EVERY_SECONDS
                self._attempt(self._forget)
            for claim in list(self._active.values()):
                self._attempt(partial(self._handling.renew, claim))

    def _is_over(self, seconds: float) -> bool:
        """Wait up to `seconds`; True if stopping and no handler is running."""
        with self._changed:
            return self._changed.wait_for(
                lambda: self._stopping.is_set() and not self._active, seconds
            )

    def _attempt(self, work: Callable[[], object]) -> None:
        try:
            work()
        except Exception:
            logger.exception("the inbox's store failed")
