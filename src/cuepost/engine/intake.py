"""What this worker claims: which lanes it owns and holds, and which have more in the store."""

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import timedelta
from itertools import islice
from uuid import UUID

from cuepost.engine.capacity import Capacity
from cuepost.engine.full_scan import FullScan
from cuepost.engine.lane_board import LaneBoard
from cuepost.engine.worker_lease import WorkerLease
from cuepost.ports.dispatch import Assignment, Claim, Claimed, Lane, Share
from cuepost.ports.store import Priority, Store, Transaction
from cuepost.ports.system import Clock
from cuepost.tuning import (
    CLAIMED_AT_ONCE,
    IDLE_LANE_CHECK_SECONDS,
    IDLE_LANE_KEPT_SECONDS,
    IDLE_LANES_KEPT,
    LATEST_ANSWER_SECONDS,
    LEAVING_LANE_CHECK_SECONDS,
    LONGEST_IN_MEMORY_SECONDS,
)


class Intake:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        lease: WorkerLease,
        board: LaneBoard,
        capacity: Capacity,
        *,
        alone: bool,
    ) -> None:
        self._store = store
        self._clock = clock
        self._lease = lease
        self._board = board
        self._capacity = capacity
        self._most_held = capacity.held
        self._alone = alone
        # A dict instead of a set, because it keeps the order of arrival.
        self._woken: dict[Lane, None] = {}
        self._full_scan = FullScan(clock)
        self._share = Share()
        # With the monotonic time at which each lane was last seen to have work.
        self._held: dict[Lane, float] = {}
        self._next_idle_check = 0.0
        self._idle: set[Lane] = set()
        # Held lanes for which other processes lease new deliveries to this worker.
        self._accepting: set[Lane] = set()
        self._accepting_share = self._share
        self._unfinished: set[Lane] = set()
        self.is_full = False
        self._is_slow = False
        # Called with lanes that were released for the worker that owns them.
        self.announce: Callable[[Collection[Lane]], None] = lambda _: None

    def wake_up(self, endpoints: Iterable[Lane]) -> None:
        self._woken.update(dict.fromkeys(filter(self.owns, endpoints)))

    def owns(self, endpoint: Lane) -> bool:
        return self._share.has(endpoint)

    def holds(self, endpoint: Lane) -> bool:
        return endpoint in self._held and self.owns(endpoint)

    def share_with(self, live: Sequence[UUID]) -> bool:
        """Take this worker's share among the live workers; return True if the share has changed.

        Lanes outside the share are released as soon as their deliveries in memory are sent.
        """
        worker, before = self._lease.worker, self._share
        if worker in live:
            self._share = Share(live.index(worker), len(live))
        if self._share == before:
            return False
        self._next_idle_check = 0.0
        self._unfinished = set(filter(self.owns, self._unfinished))
        return True

    def leave(self) -> Collection[Lane]:
        """Stop taking deliveries for any lane; return the lanes with attempts in flight."""
        self._held.clear()
        return self._board.busy

    def has_room_for(self, endpoint: Lane, its_others: int, all_others: int) -> bool:
        """Whether there is room for one more besides the others, which are about to be added."""
        return (
            self.holds(endpoint)
            and self.memory_left > all_others
            and self._board.room_of(endpoint) > its_others
        )

    @property
    def memory_left(self) -> int:
        """How many more assignments this process may hold."""
        return max(0, self._most_held - self._board.load)

    @property
    def is_memory_short(self) -> bool:
        """Whether memory has room for less than a claim."""
        return self.memory_left < min(CLAIMED_AT_ONCE, self._most_held // 2)

    def decline(self, assignments: Sequence[Assignment]) -> None:
        """Release deliveries that were leased to this worker but cannot be sent here now."""
        self._lease.give_back(self._lease.took(assignments))
        lanes = [each.lane for each in assignments]
        self._unfinished.update(filter(self.owns, lanes))
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
        self._adjust_memory()
        room = min(CLAIMED_AT_ONCE, self.memory_left)
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

    def _adjust_memory(self) -> None:
        """Hold only as much as can be sent before it is outdated."""
        if self._board.holds_too_many:
            self._most_held = max(self._capacity.attempts, self._board.load // 2)
        elif not self._board.ready:
            self._most_held = min(self._capacity.held, 2 * self._most_held)

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
        self._collect_idle_lanes(asked_at)
        idle = set(self._idle)

        async def ask(
            transaction: Transaction,
        ) -> tuple[Collection[UUID], Claimed, set[Lane], Share]:
            queue = transaction.queue
            if old is not None:
                shared = await self._lease.time(queue)
                await self._lease.begin(queue, shared)
                await queue.remove_worker(old, now)
                await queue.remove_dead_workers(shared)
                self.share_with(await queue.live_workers(shared))
            returned = await self._lease.release_returned(queue, now)
            claimed = await queue.claim(self._wanted(room, woken, scan_after, idle), now)
            accepting = self._accepting_after(claimed, idle)
            closed = self._accepting - accepting - (idle - claimed.held)
            await queue.accept(self._lease.worker, accepting - self._accepting, closed)
            return returned, claimed, accepting, self._share

        returned, claimed, accepting, share = await self._store.write(ask, Priority.BACKGROUND)
        self._accepting, self._accepting_share = accepting, share
        if old is not None:
            self._lease.begun(asked_at)
        self._lease.returned(returned)
        self._idle -= idle
        self._held |= dict.fromkeys(claimed.held, asked_at)
        if let_go := [lane for lane in idle if not self.owns(lane)]:
            self.announce(let_go)
        return claimed, asked_at

    def _accepting_after(self, claimed: Claimed, idle: set[Lane]) -> set[Lane]:
        """Held lanes with nothing left in the store; a worker that is alone needs no handover."""
        if self._alone:
            return set()
        before = self._accepting - idle
        if self._share != self._accepting_share:
            before = set(filter(self.owns, before))
        unfinished = (self._unfinished - claimed.examined) | claimed.more
        return before.union(filter(self.owns, claimed.held)) - unfinished

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
            idle=() if self._alone else idle,
            share=self._share,
            alone=self._alone,
        )

    def _collect_idle_lanes(self, now: float) -> None:
        """Stop reservations in idle lanes, so that the next claim can release them."""
        if now < self._next_idle_check:
            return
        pause, excess = IDLE_LANE_CHECK_SECONDS, len(self._held) - IDLE_LANES_KEPT
        for lane, busy_at in list(self._held.items()):
            if self._board.load_of(lane):
                self._held[lane] = now
                if not self.owns(lane):
                    pause = LEAVING_LANE_CHECK_SECONDS
            elif excess > 0 or not self.owns(lane) or now >= busy_at + IDLE_LANE_KEPT_SECONDS:
                del self._held[lane]
                self._idle.add(lane)
                excess -= 1
        self._next_idle_check = now + pause

    def _start_over(self) -> UUID:
        """Drop everything held under the old worker id: other workers may have it already."""
        self._board.drop_waiting()
        self._held.clear()
        self._idle.clear()
        self._accepting.clear()
        self._unfinished.clear()
        return self._lease.start_over()
