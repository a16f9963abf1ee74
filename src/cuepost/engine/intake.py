"""What this worker claims and when, and which of its lanes have more in the store."""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import timedelta
from itertools import islice
from math import inf
from uuid import UUID

from cuepost.engine.lane_board import LaneBoard
from cuepost.engine.lanes import Accepting, Lanes
from cuepost.engine.worker_lease import WorkerLease
from cuepost.log_lines import log_store_error
from cuepost.ports.dispatch import (
    BEGINNING,
    Assignment,
    Claim,
    Claimed,
    Lane,
    ScanProgress,
)
from cuepost.ports.store import Contention, Priority, Store, StoreError, Transaction
from cuepost.ports.system import Clock
from cuepost.tuning import (
    CLAIMED_AT_ONCE,
    LATEST_ANSWER_SECONDS,
    LONGEST_IN_MEMORY_SECONDS,
    LONGEST_WITHOUT_SCAN_SECONDS,
    PAUSE_AFTER_CONTENTION_SECONDS,
    PAUSE_AFTER_FAILURE_SECONDS,
)

log = logging.getLogger("cuepost.engine")


class Intake:
    """`begin` is called with what was claimed, and the monotonic time that it describes.

    No sleep between two claims is longer than `poll`.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        lease: WorkerLease,
        board: LaneBoard,
        lanes: Lanes,
        *,
        begin: Callable[[Sequence[Assignment], float], None],
        poll: timedelta,
    ) -> None:
        self._store = store
        self._clock = clock
        self._lease = lease
        self._board = board
        self._lanes = lanes
        self._begin = begin
        self._longest_sleep = poll.total_seconds()
        # A dict instead of a set, because it keeps the order of arrival.
        self._woken: dict[Lane, None] = {}
        self._wake_up = asyncio.Event()
        # The lane after which the next full scan continues, and when it is due, whichever lanes are
        # woken before.
        self._scan_after, self._scan_at = BEGINNING, inf
        # Lanes with deliveries left in the store.
        self.unfinished: set[Lane] = set()
        self._is_slow = False
        self.sleeps_until: float | None = None
        # Whether it sleeps because memory has no room for another claim.
        self.is_full = False
        self.is_stopping = False

    def wake(self, endpoints: Iterable[Lane] = ()) -> None:
        """End the current sleep, or the next one as soon as it begins, to claim from these."""
        self._note_work(endpoints)
        self._wake_up.set()

    def _note_work(self, endpoints: Iterable[Lane]) -> None:
        self._woken.update(dict.fromkeys(filter(self._lanes.owns, endpoints)))

    def wake_within(self, seconds: float) -> None:
        """End a sleep that would last longer, so that the next can be shorter."""
        if self.sleeps_until is not None and self._clock.monotonic() + seconds < self.sleeps_until:
            self._wake_up.set()

    def stop(self) -> None:
        self.is_stopping = True
        self._wake_up.set()

    def share_with(self, live: Sequence[UUID]) -> bool:
        """Take this worker's share among the live workers; return True if the share has changed."""
        if not self._lanes.share_with(live):
            return False
        self.unfinished = set(filter(self._lanes.owns, self.unfinished))
        return True

    def decline(self, assignments: Sequence[Assignment]) -> None:
        """Release deliveries that were leased to this worker but cannot be sent here now."""
        self._lease.give_back(self._lease.took(assignments))
        lanes = [each.lane for each in assignments]
        self.unfinished.update(filter(self._lanes.owns, lanes))
        self.wake(lanes)

    async def run(self) -> None:
        """Claim again and again, until `stop` is called."""
        while not self.is_stopping:
            # A wake-up after this is for the next claim.
            self._wake_up.clear()
            try:
                if not await self.claim():
                    await self._sleep()
            except Contention as error:
                log.info("event=claim_contended error=%s", error)
                await self._clock.wait(PAUSE_AFTER_CONTENTION_SECONDS)
            except StoreError as error:
                log_store_error(log, "claim_failed", error, "claim")
                await self._clock.wait(PAUSE_AFTER_FAILURE_SECONDS)

    async def _sleep(self) -> None:
        """Wait until the next claim is needed, or until a wake-up."""
        now = self._clock.monotonic()
        seconds = min(self._longest_sleep, self._board.next_expiry - now)
        self.is_full = self._board.room == 0
        if not self.is_full:
            seconds = min(seconds, self._scan_at - now)
        seconds = max(0.0, seconds)
        self.sleeps_until = now + seconds
        try:
            await self._clock.wait_for(self._wake_up, seconds)
        finally:
            self.sleeps_until, self.is_full = None, False

    async def claim(self) -> bool:
        """Claim what there is room for and begin it; return True to claim again at once."""
        now = self._clock.monotonic()
        expired = self._board.drop_expired(now)
        self._lease.give_back(expired)
        self._board.adjust_room()
        room = min(CLAIMED_AT_ONCE, self._board.room)
        if room == 0 and not self._lease.has_releases:
            return False
        scan_after = self._scan_after if self._needs_full_scan(now) else None
        woken = self._next_woken()
        try:
            claimed, asked_at = await self._claimed(room, woken, scan_after)
        except BaseException:
            self._note_work(woken)
            raise
        self._note_scan(claimed.scan, now)
        self.unfinished = (self.unfinished - claimed.examined) | claimed.more
        served = claimed.more & {each.lane for each in claimed.assignments}
        self._board.claimed(served, claimed.examined - claimed.more, now)
        self._begin(claimed.assignments, self._as_of(asked_at))
        # Some lanes had no room when the claim was made, and have room by now. The other unfinished
        # lanes are woken when their attempts end.
        left = self.unfinished & (claimed.more | {each.lane for each in expired})
        self._note_work(lane for lane in left if self._board.claimable_of(lane) > 0)
        return bool(self._woken) or self._scan_after != BEGINNING

    def _needs_full_scan(self, now: float) -> bool:
        """A claim with a full scan takes about 1.5 times as long as one for woken lanes only.

        But not all work has a wake-up: retries come due, workers die, a wake-up may be lost.
        """
        is_due = self._scan_after != BEGINNING or self._scan_at <= now
        is_lease_new = not self._lease.is_held
        return not self._woken or is_lease_new or self._lease.has_releases or is_due

    def _note_scan(self, scan: ScanProgress | None, claimed_at: float) -> None:
        if scan is None:
            self._scan_at = min(self._scan_at, claimed_at + LONGEST_WITHOUT_SCAN_SECONDS)
            return
        self._scan_after, self._scan_at = scan.reached, inf
        if scan.next_due is not None:
            left = (scan.next_due - self._lease.now).total_seconds()
            self._scan_at = self._clock.monotonic() + left

    def _next_woken(self) -> set[Lane]:
        """At most CLAIMED_AT_ONCE of the woken endpoints, the first to be woken first."""
        woken = set(islice(self._woken, CLAIMED_AT_ONCE))
        for lane in woken:
            del self._woken[lane]
        return woken

    async def _claimed(
        self, room: int, woken: set[Lane], scan_after: Lane | None
    ) -> tuple[Claimed, float]:
        is_held = self._lease.is_held or await self._lease.resume(self._store)
        old = None if is_held else self._start_over()
        asked_at = self._clock.monotonic()
        idle = self._lanes.idle(asked_at)

        async def ask(
            transaction: Transaction,
        ) -> tuple[Collection[UUID], Claimed, Accepting]:
            queue = transaction.queue
            if old is not None:
                shared = await self._lease.register(queue)
                await queue.remove_worker(old, self._lease.now)
                await queue.remove_dead_workers(shared)
                self.share_with(await queue.live_workers(shared))
            # By the clock of the store, whose offset `register` may just have found.
            now = self._lease.now
            returned = await self._lease.release_returned(queue, now)
            worker, share = self._lease.worker, self._lanes.share
            wanted = Claim(worker, room, self._board.claimable_of, woken, scan_after, idle, share)
            claimed = await queue.claim(wanted, now)
            more = (self.unfinished - claimed.examined) | claimed.more
            return returned, claimed, await self._lanes.accept(queue, claimed, idle, more)

        returned, claimed, accepting = await self._store.write(ask, Priority.BACKGROUND)
        if old is not None:
            self._lease.renewed(self._lease.worker, asked_at, is_mine=True)
        self._lease.returned(returned)
        self._lanes.committed(claimed, idle, accepting, asked_at)
        return claimed, asked_at

    def _as_of(self, asked_at: float) -> float:
        """The instant that an answer describes: a slow one may be outdated, for example by a stop.

        If every claim is that slow, a late answer is used, because late is better than never.
        """
        now = self._clock.monotonic()
        was_slow, self._is_slow = self._is_slow, now - asked_at >= LONGEST_IN_MEMORY_SECONDS
        return now if was_slow and now - asked_at < LATEST_ANSWER_SECONDS else asked_at

    def _start_over(self) -> UUID:
        """Drop everything held under the old worker id: other workers may have it already."""
        self._board.drop_waiting()
        self._lanes.start_over()
        self.unfinished.clear()
        return self._lease.start_over()
