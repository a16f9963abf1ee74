"""The time limit of a request, and whether it may have changed something when it times out."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from cuepost.ports.saving import OF_REQUEST, Saving
from cuepost.ports.store import CommitUnknown, Contention, StoreUnavailable


class RequestDeadline:
    """Raises StoreUnavailable after the timeout, because requests wait mostly for the store.

    That, and any other failure of the store, becomes CommitUnknown if something may be saved.

    It cancels the task as `asyncio.timeout` does, but a request has one timer: when the clock was
    stopped for a while, the timer notices that as it fires, and is set again.
    """

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._saving = Saving()
        self._timer: asyncio.TimerHandle | None = None
        self._is_paused = self._has_expired = False

    async def __aenter__(self) -> Self:
        task = asyncio.current_task()
        assert task is not None
        self._task, self._cancelling = task, task.cancelling()
        self._saving_before = OF_REQUEST.set(self._saving)
        self._loop = asyncio.get_running_loop()
        if self._seconds is not None:
            self._until = self._loop.time() + self._seconds
            self._timer = self._loop.call_at(self._until, self._on_timer)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        OF_REQUEST.reset(self._saving_before)
        if self._timer is not None:
            self._timer.cancel()
        if self._has_expired:
            # Unless the task was cancelled by others as well.
            is_ours = self._task.uncancel() <= self._cancelling
            if is_ours and kind is asyncio.CancelledError:
                late = CommitUnknown if self._saving.begun else StoreUnavailable
                raise late(f"the request was not done within {self._seconds:g} s") from error
        if isinstance(error, CommitUnknown) or not self._saving.begun:
            return
        if isinstance(error, StoreUnavailable | Contention):
            raise CommitUnknown(str(error), error.sqlstate) from error

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the clock while the client has to act, for example to send its body."""
        if self._seconds is None:
            yield
            return
        began, self._is_paused = self._loop.time(), True
        try:
            yield
        finally:
            self._is_paused = False
            self._until += self._loop.time() - began
            if self._timer is None:
                self._timer = self._loop.call_at(self._until, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        if self._is_paused:
            return
        if self._loop.time() < self._until:
            self._timer = self._loop.call_at(self._until, self._on_timer)
        else:
            self._has_expired = True
            self._task.cancel()
