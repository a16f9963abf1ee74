"""The time limit of a request, and whether it may have changed something when it times out."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

from cuepost.ports.saving import Saving, track_saving
from cuepost.ports.store import CommitUnknown, Contention, StoreUnavailable


@dataclass(frozen=True, slots=True)
class Deadline:
    _timeout: asyncio.Timeout

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the clock while the client has to act, for example to send its body."""
        loop, until = asyncio.get_running_loop(), self._timeout.when()
        left = None if until is None else until - loop.time()
        self._timeout.reschedule(None)
        try:
            yield
        finally:
            if left is not None:
                self._timeout.reschedule(loop.time() + left)


@asynccontextmanager
async def request_deadline(seconds: float | None) -> AsyncIterator[Deadline]:
    """Raises StoreUnavailable after the timeout, because requests wait mostly for the store.

    That, and any other failure of the store, becomes CommitUnknown if something may be saved.
    """
    saving = Saving()
    with track_saving(saving):
        try:
            async with asyncio.timeout(seconds) as timeout:
                yield Deadline(timeout)
        except TimeoutError as error:
            if not timeout.expired():
                raise
            late = CommitUnknown if saving.begun else StoreUnavailable
            raise late(f"the request was not done within {seconds:g} s") from error
        except CommitUnknown:
            raise
        except (StoreUnavailable, Contention) as error:
            if not saving.begun:
                raise
            raise CommitUnknown(str(error), error.sqlstate) from error
