"""Handles one event: claims it, runs its handler and records the outcome."""

import asyncio
import inspect
import logging
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from cuepost_receiver.event import Event, read_event
from cuepost_receiver.refusal import VerificationFailed
from cuepost_receiver.stores.protocol import Claim, InboxStore

logger = logging.getLogger("cuepost_receiver")

Handler = Callable[[Event], Awaitable[object] | object]
LONGEST_ERROR = 1_000


class GiveUp(Exception):
    """Raise it in a handler if a retry is useless: the event becomes a dead letter."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Delays before the second, third, … attempt; after the last attempt comes the dead letter.

    Random jitter spreads the retries of events that failed together.
    """

    delays: tuple[float, ...] = (5, 30, 120, 600, 3_600, 21_600)
    jitter: float = 0.1

    @property
    def attempts(self) -> int:
        return len(self.delays) + 1

    def pause_after(self, attempt: int) -> float | None:
        """None if no attempt is left."""
        if attempt > len(self.delays):
            return None
        return self.delays[attempt - 1] * (1 + self.jitter * random.random())


@dataclass(frozen=True, slots=True)
class Handling:
    store: InboxStore
    handler: Handler
    on_test: Handler | None
    policy: RetryPolicy
    lease_seconds: float
    clock: Callable[[], float] = time.time

    def claim(self) -> Claim | None:
        now = self.clock()
        return self.store.claim(now, now + self.lease_seconds)

    def renew(self, claim: Claim) -> bool:
        return self.store.renew(claim, self.clock() + self.lease_seconds)

    def handle(self, claim: Claim) -> None:
        """Run the handler; its exceptions are caught and recorded."""
        if claim.attempt > self.policy.attempts:
            # Attempts are counted before they start, so the process died during each of them.
            self._bury(claim, "the process ended during every attempt")
            return
        try:
            self._run(read_event(claim.body))
        except GiveUp as reason:
            self._bury(claim, _shown(reason))
        except VerificationFailed as fault:
            self._bury(claim, str(fault))
        except (Exception, SystemExit) as error:
            logger.exception("handler failed, event %s, attempt %d", claim.event_id, claim.attempt)
            self._retry(claim, _shown(error))
        else:
            self._finish(claim)

    def _run(self, event: Event) -> None:
        handler = self.on_test if event.is_test else self.handler
        if handler is None:
            logger.info("test event %s arrived", event.id)
            return
        result = handler(event)
        if inspect.isawaitable(result):
            asyncio.run(_awaited(result))

    def _finish(self, claim: Claim) -> None:
        if not self.store.finish(claim, self.clock()):
            logger.warning("event %s took longer than its lease and may run twice", claim.event_id)

    def _retry(self, claim: Claim, error: str) -> None:
        pause = self.policy.pause_after(claim.attempt)
        if pause is None:
            self._bury(claim, error)
        else:
            self.store.postpone(claim, self.clock() + pause, error)

    def _bury(self, claim: Claim, error: str) -> None:
        logger.error("event %s becomes a dead letter: %s", claim.event_id, error)
        self.store.bury(claim, self.clock(), error)


async def _awaited(result: Awaitable[object]) -> None:
    await result


def _shown(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".replace("\x00", "�")[:LONGEST_ERROR]
