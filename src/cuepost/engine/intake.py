"""What this worker claims, and which of its lanes have more in the store."""

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import timedelta
from itertools import islice
from uuid import UUID

from cuepost.engine.full_scan import FullScan
from cuepost.engine.lane_board import LaneBoard
from cuepost.engine.lanes import Accepting, Lanes
from cuepost.engine.worker_lease import WorkerLease
from cuepost.ports.dispatch import Assignment, Claim, Claimed, Lane
from cuepost.ports.store import Priority, Store, Transaction
from cuepost.ports.system import Clock
from cuepost.tuning import (
    CLAIMED_AT_ONCE,
    LATEST_ANSWER_SECONDS,
    LONGEST_IN_MEMORY_SECONDS,
)


class Intake:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        lease: WorkerLease,
        board: LaneBoard,
        lanes: Lanes,
    ) -> None:
        self._store = store
        self._clock = clock
        self._lease = lease
        self._board = board
        self._lanes = lanes
        # A dict instead of a set, because it keeps the order of arrival.
        self._woken: dict[Lane, None] = {}
        self._full_scan = FullScan(clock)
        self._unfinished: set[Lane] = set()
        self.is_full = False
        self._is_slow = False

    def wake_up(self, endpoints: Iterable[Lane]) -> None:
        self._woken.update(dict.fromkeys(filter(self._lanes.owns, endpoints)))

    def share_with(self, live: Sequence[UUID]) -> bool:
        """Take this worker's share among the live workers; return True if the share has changed."""
        if not self._lanes.share_with(live):
            return False
        self._unfinished = set(filter(self._lanes.owns, self._unfinished))
        return True

    def decline(self, assignments: Sequence[Assignment]) -> None:
        """Release deliveries that were leased to this worker but cannot be sent here now."""
        self._lease.give_back(self._lease.took(assignments))
        lanes = [each.lane for each in assignments]
        self._unfinished.update(filter(self._lanes.owns, lanes))
        self.wake_up(lanes)

    def has_more(self, endpoint: Lane) -> bool:
        """Whether deliveries for this endpoint are left in the store."""
        return endpoint in self._unfinished

    @property
    def has_backlog(self) -> bool:
        """Whether some endpoint has more in the store than its lane may hold here."""
        return bool(self._unfinished)

    def seconds_to_sleep(self, longest: timedelta) -> float:
        """Seconds until the next claim is needed, unless a wake-up comes before."""
        seconds = min(longest.total_seconds(), self._board.next_expiry - self._clock.monotonic())
        return max(0.0, seconds if self.is_full else min(seconds, self._full_scan.seconds_left))

    async def claim(self, begin: Callable[[Sequence[Assignment], float], None]) -> bool:
        """Claim what there is room for and begin it; return True to claim again at once."""
        now = self._clock.monotonic()
        expired = self._board.drop_expired(now)
        self._lease.give_back(expired)
        self._board.adjust_room()
        room = min(CLAIMED_AT_ONCE, self._board.room)
        self.is_full = room == 0
        if self.is_full and not self._lease.has_releases:
            return False
        scan_after = self._full_scan.scan_after if self._needs_full_scan() else None
        woken = self._next_woken()
        try:
            claimed, asked_at = await self._claimed(room, woken, scan_after)
        except BaseException:
            self.wake_up(woken)
            raise
        if claimed.scan is None:
            self._full_scan.skipped(now)
        else:
            self._full_scan.done(claimed.scan)
        self._unfinished = (self._unfinished - claimed.examined) | claimed.more
        served = claimed.more & {each.lane for each in claimed.assignments}
        self._board.claimed(served, claimed.examined - claimed.more, now)
        self.is_full = len(claimed.assignments) >= room
        begin(claimed.assignments, self._as_of(asked_at))
        # Some lanes had no room when the claim was made, and have room by now. The other unfinished
        # lanes are woken when their attempts end.
        left = self._unfinished & (claimed.more | {each.lane for each in expired})
        self.wake_up(lane for lane in left if self._board.claimable_of(lane) > 0)
        return bool(self._woken) or self._full_scan.is_halfway

    def _needs_full_scan(self) -> bool:
        is_lease_new = not self._lease.is_held
        returns_some = self._lease.has_releases
        return not self._woken or is_lease_new or returns_some or self._full_scan.is_due

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
        asked_at, now = self._clock.monotonic(), self._lease.now
        idle = self._lanes.idle(asked_at)

        async def ask(
            transaction: Transaction,
        ) -> tuple[Collection[UUID], Claimed, Accepting]:
            queue = transaction.queue
            if old is not None:
                shared = await self._lease.register(queue)
                await queue.remove_worker(old, now)
                await queue.remove_dead_workers(shared)
                self.share_with(await queue.live_workers(shared))
            returned = await self._lease.release_returned(queue, now)
            claimed = await queue.claim(self._wanted(room, woken, scan_after, idle), now)
            more = (self._unfinished - claimed.examined) | claimed.more
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

    def _wanted(
        self, room: int, woken: set[Lane], scan_after: Lane | None, idle: set[Lane]
    ) -> Claim:
        return Claim(
            worker=self._lease.worker,
            room=room,
            room_of=self._board.claimable_of,
            woken=woken,
            scan_after=scan_after,
            idle=idle,
            share=self._lanes.share,
        )

    def _start_over(self) -> UUID:
        """Drop everything held under the old worker id: other workers may have it already."""
        self._board.drop_waiting()
        self._lanes.start_over()
        self._unfinished.clear()
        return self._lease.start_over()
