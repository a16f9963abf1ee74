"""What this worker asks the queue for: which endpoints are its own, and which have more."""

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import timedelta
from itertools import islice
from uuid import UUID

from cuepost.engine.lane_board import LaneBoard
from cuepost.engine.look_around import LookAround
from cuepost.engine.worker_lease import WorkerLease
from cuepost.ports.dispatch import Assignment, Claim, Claimed, Lane
from cuepost.ports.runtime import Clock
from cuepost.ports.store import Priority, Store, Transaction
from cuepost.tuning import (
    CLAIMED_AT_ONCE,
    FEW_LANES,
    LATEST_ANSWER_SECONDS,
    LONGEST_IN_MEMORY_SECONDS,
    OFFERED_FOR_SECONDS,
)


class Intake:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        lease: WorkerLease,
        board: LaneBoard,
        *,
        most_held: int,
        alone: bool,
    ) -> None:
        self._store = store
        self._clock = clock
        self._lease = lease
        self._board = board
        self._most_held = most_held
        self._alone = alone
        # In the order in which they came; a set would forget that.
        self._hints: dict[Lane, None] = {}
        self._look = LookAround(clock)
        self._held: set[Lane] = set()
        self._idle: set[Lane] = set()
        self._left: set[Lane] = set()
        self._offered_until: dict[Lane, float] = {}
        self._share: int | None = None
        self._unfinished: set[Lane] = set()
        self.is_full = False
        self._is_slow = False
        # Lanes that others may have from now on.
        self.offer: Callable[[Collection[Lane]], None] = lambda _: None

    def hint(self, endpoints: Iterable[Lane]) -> None:
        self._hints.update(dict.fromkeys(endpoints))

    def holds(self, endpoint: Lane) -> bool:
        return endpoint in self._held and endpoint not in self._left

    def keep_to(self, share: int | None) -> None:
        """Lanes beyond that are left to other workers.

        Those go that are empty first; what is in them is still sent from here.
        """
        self._share, self._left = share, set()
        if share is not None:
            busiest_first = sorted(self._held, key=self._board.load_of, reverse=True)
            self._left.update(busiest_first[share:])

    @property
    def outgrew_its_share(self) -> bool:
        """There are others, and perhaps they have much less to do by now."""
        if self._share is None:
            return False
        return len(self._held - self._left) > max(FEW_LANES, 2 * self._share)

    def has_more(self, endpoint: Lane) -> bool:
        """Something for this endpoint is left in the store."""
        return endpoint in self._unfinished

    @property
    def has_backlog(self) -> bool:
        """Some endpoint has more in the store than it may hold here."""
        return bool(self._unfinished)

    def seconds_to_sleep(self, longest: timedelta) -> float:
        """Until something has to be done here, if nobody says so before."""
        now = self._clock.monotonic()
        until = min((self._board.next_expiry, *self._offered_until.values()))
        seconds = min(longest.total_seconds(), until - now)
        return max(0.0, seconds if self.is_full else min(seconds, self._look.seconds_left))

    async def claim(self, begin: Callable[[Sequence[Assignment], float], None]) -> bool:
        """Let them begin that there is room for; True when it is worth asking again at once."""
        now = self._clock.monotonic()
        self._take_back_offers(now)
        self._lease.give_back(self._board.drop_expired(now))
        room = min(CLAIMED_AT_ONCE, max(0, self._most_held - self._board.load))
        self.is_full = room == 0
        if self.is_full and not self._lease.has_unwanted:
            return False
        behind = self._look.behind if self._has_to_look_around() else None
        hints = self._next_hints()
        try:
            claimed, asked_at = await self._claimed(room, hints, behind)
        except BaseException:
            self.hint(hints)
            raise
        if claimed.around is None:
            self._look.left_out(now)
        else:
            self._look.done(claimed.around)
        self._unfinished = (self._unfinished - claimed.looked_at) | claimed.more
        served = claimed.more & {each.lane for each in claimed.assignments}
        self._board.claimed(served, claimed.looked_at - claimed.more, now)
        self.is_full = len(claimed.assignments) >= room
        begin(claimed.assignments, self._as_of(asked_at))
        # Some were full when they were asked for, and had nothing left by the time of the answer.
        self.hint(lane for lane in self._unfinished if self._room_of(lane) > 0)
        return bool(self._hints) or self._look.is_halfway

    def _has_to_look_around(self) -> bool:
        is_lease_new = not self._lease.is_held
        returns_some = self._lease.has_unwanted
        return not self._hints or is_lease_new or returns_some or self._look.is_due

    def _next_hints(self) -> set[Lane]:
        """Of many endpoints with more than there is room for, few are asked about at a time."""
        hints = set(islice(self._hints, CLAIMED_AT_ONCE))
        for hint in hints:
            del self._hints[hint]
        return hints

    async def _claimed(
        self, room: int, hints: set[Lane], behind: Lane | None
    ) -> tuple[Claimed, float]:
        is_held = self._lease.is_held or await self._lease.resume(self._store)
        old = None if is_held else self._start_anew()
        asked_at, now = self._clock.monotonic(), self._clock.now()
        self._put_idle_lanes_aside()
        idle = set(self._idle)

        async def ask(transaction: Transaction) -> tuple[Collection[UUID], Claimed]:
            queue = transaction.queue
            if old is not None:
                await self._lease.begin(queue, now)
                await queue.dismiss(old, now)
                await queue.dismiss_dead(now)
            returned = await self._lease.return_unwanted(queue, now)
            return returned, await queue.claim(self._wanted(room, hints, behind, idle), now)

        returned, claimed = await self._store.write(ask, Priority.BACKGROUND)
        if old is not None:
            self._lease.begun(asked_at)
        self._lease.returned(returned)
        self._idle -= idle
        self._held |= claimed.held
        self._offer_to_others(idle & self._left, asked_at)
        return claimed, asked_at

    def _as_of(self, asked_at: float) -> float:
        """Of which instant an answer is: what took too long to arrive may have been stopped since.

        Where every claim takes that long, it is better to send late than never.
        """
        now = self._clock.monotonic()
        was_slow, self._is_slow = self._is_slow, now - asked_at >= LONGEST_IN_MEMORY_SECONDS
        return now if was_slow and now - asked_at < LATEST_ANSWER_SECONDS else asked_at

    def _wanted(self, room: int, hints: set[Lane], behind: Lane | None, idle: set[Lane]) -> Claim:
        mine = {*self._held, *self._board.limited, *self._left, *self._offered_until}
        return Claim(
            worker=self._lease.worker,
            room=room,
            per_lane=self._board.at_first,
            room_of={lane: self._room_of(lane) for lane in mine},
            hints=hints,
            behind=behind,
            idle=() if self._alone else idle,
            alone=self._alone,
        )

    def _room_of(self, lane: Lane) -> int:
        is_for_others = lane in self._left or lane in self._offered_until
        return 0 if is_for_others else self._board.claimable_of(lane)

    def _offer_to_others(self, free: Collection[Lane], now: float) -> None:
        if free:
            self._left.difference_update(free)
            self._offered_until.update(dict.fromkeys(free, now + OFFERED_FOR_SECONDS))
            self.offer(free)

    def _take_back_offers(self, now: float) -> None:
        """Others may be busy themselves, or gone; whoever took one has it."""
        self._offered_until = {
            lane: until for lane, until in self._offered_until.items() if now < until
        }

    def _put_idle_lanes_aside(self) -> None:
        """From here on nothing can be reserved in them, so that they can be given up."""
        idle = {lane for lane in self._held if not self._board.load_of(lane)}
        self._held -= idle
        self._idle |= idle

    def _start_anew(self) -> UUID:
        """What the old name held may be with others already."""
        self._board.drop_waiting()
        self._held.clear()
        self._idle.clear()
        self._left.clear()
        self._offered_until.clear()
        self._unfinished.clear()
        return self._lease.start_anew()
