"""The assignments in the memory of this worker, by endpoint; endpoints take turns.

A lane is ready while it has assignments waiting and fewer attempts in flight than its cap. How many
assignments a lane may hold depends on how fast it sends them: a slow endpoint leaves the memory to
others, and its deliveries wait in the store. A lane with a backlog gets as many at a time as it
sends in a moment, because large claims would delay the small ones of other lanes.
"""

from collections import OrderedDict, deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from math import inf

from cuepost.ports.dispatch import Assignment, Lane
from cuepost.ports.system import Clock
from cuepost.tuning import (
    FIRST_SHARE_PER_SLOT,
    HANDED_OVER_AT_ONCE,
    HELD_AT_FIRST_PER_ATTEMPT,
    HELD_PER_ATTEMPT,
    HELD_PER_SLOT,
    LONGEST_IN_MEMORY_SECONDS,
    QUICK_REFILL_SECONDS,
    SHORT_OF_MEMORY_SECONDS,
    SLOW_REFILL_SECONDS,
)


@dataclass(frozen=True, slots=True)
class Capacity:
    """Attempts in flight in this process, and to one endpoint from all processes together."""

    attempts: int
    per_endpoint: int

    @property
    def held(self) -> int:
        """The most assignments in memory, when most of them wait for slow endpoints."""
        return HELD_PER_ATTEMPT * self.attempts

    @property
    def held_at_first(self) -> int:
        """Enough that no attempt waits for a claim."""
        return HELD_AT_FIRST_PER_ATTEMPT * self.attempts

    @property
    def held_per_lane(self) -> int:
        return max(self.attempts, HELD_PER_SLOT * self.per_endpoint)


@dataclass(slots=True)
class _Lane:
    waiting: deque[tuple[float, Assignment]] = field(default_factory=deque)
    in_flight: int = 0
    load: int = 0


@dataclass(slots=True)
class _Pace:
    """For a lane with a backlog: how much of it the lane may hold, and when it was last filled."""

    held: int
    filled_at: float = -inf


class LaneBoard:
    def __init__(self, capacity: Capacity, clock: Clock) -> None:
        self.capacity = capacity
        self._clock = clock
        self._cap = capacity.per_endpoint
        self._most_per_lane = capacity.held_per_lane
        self._first_share = min(FIRST_SHARE_PER_SLOT * self._cap, self._most_per_lane)
        self._most_held = self._held_at_first = capacity.held_at_first
        # Since when memory has been short, and how many assignments had been taken from it by then.
        self._short_since: tuple[float, int] | None = None
        self._paces: dict[Lane, _Pace] = {}
        self._lanes: dict[Lane, _Lane] = {}
        # Lanes from which an attempt may start, in the order of their turns.
        self.ready: OrderedDict[Lane, _Lane] = OrderedDict()
        # No waiting assignment ceases to be fresh before this.
        self._fresh_until = inf
        # `load` counts what waits, what is in flight and what is reserved.
        self.load = self.waiting = self.in_flight = 0
        # How many assignments have been taken since the start.
        self._taken = 0

    def add(self, assignments: Iterable[Assignment], fresh_until: float) -> None:
        """After `fresh_until` the assignments may be outdated and are not sent."""
        self._fresh_until = min(self._fresh_until, fresh_until)
        for assignment in assignments:
            lane = self._lanes.setdefault(assignment.lane, _Lane())
            lane.waiting.append((fresh_until, assignment))
            lane.load += 1
            self.load += 1
            self.waiting += 1
            if lane.in_flight < self._cap:
                self.ready[assignment.lane] = lane

    def take(self) -> tuple[float, Assignment] | None:
        """The next assignment of the lane whose turn it is, with the time until it is fresh."""
        if not self.ready or self.in_flight >= self.capacity.attempts:
            return None
        endpoint, lane = self.ready.popitem(last=False)
        taken = lane.waiting.popleft()
        self.waiting -= 1
        lane.in_flight += 1
        self.in_flight += 1
        self._taken += 1
        pace = None if lane.waiting else self._paces.get(endpoint)
        if pace is not None and pace.held < self._first_share:
            # The lane has got through what it had.
            pace.held = min(self._first_share, 2 * pace.held)
        if lane.waiting and lane.in_flight < self._cap:
            self.ready[endpoint] = lane
        return taken

    def done(self, endpoint: Lane) -> None:
        """An attempt has ended."""
        lane = self._lanes[endpoint]
        lane.in_flight -= 1
        self.in_flight -= 1
        if lane.waiting:
            self.ready[endpoint] = lane
        self.free(endpoint)

    def reserve(self, endpoint: Lane) -> bool:
        """Reserve room for one assignment; return False if memory or the lane has none."""
        lane = self._lanes.get(endpoint) or _Lane()
        if self.load >= self._most_held or lane.load >= self._most_per_lane:
            return False
        self._lanes[endpoint] = lane
        lane.load += 1
        self.load += 1
        return True

    def free(self, endpoint: Lane, count: int = 1) -> None:
        """Reservations or assignments of the lane are gone."""
        lane = self._lanes[endpoint]
        self.load -= count
        lane.load -= count
        if not lane.load:
            del self._lanes[endpoint]

    @property
    def busy(self) -> Collection[Lane]:
        """The lanes with something in flight, waiting or reserved."""
        return list(self._lanes)

    def load_of(self, endpoint: Lane) -> int:
        lane = self._lanes.get(endpoint)
        return lane.load if lane else 0

    def has_capacity_for(self, endpoint: Lane | None = None) -> bool:
        """Whether one more attempt may be in flight, to that endpoint if one is named."""
        lane = self._lanes.get(endpoint) if endpoint is not None else None
        has_slot = lane is None or lane.in_flight < self._cap
        return has_slot and self.in_flight < self.capacity.attempts

    def claimable_of(self, endpoint: Lane) -> int:
        """How many more this lane may claim; 0 while it holds more than half of its share."""
        pace, load = self._paces.get(endpoint), self.load_of(endpoint)
        held = self._first_share if pace is None else pace.held
        # With less than the first share, an endpoint is so slow that none of its slots may idle.
        return max(0, held - load) if 2 * load <= max(held, self._first_share) else 0

    def claimed(self, served: Collection[Lane], done: Iterable[Lane], at: float) -> None:
        """`served` lanes have more in the store; lanes that are `done` do not."""
        for endpoint in done:
            self._paces.pop(endpoint, None)
        for endpoint in served:
            pace = self._paces.setdefault(endpoint, _Pace(self._first_share))
            lasted, pace.filled_at = at - pace.filled_at, at
            if pace.held >= self._first_share and lasted < QUICK_REFILL_SECONDS:
                pace.held = min(self._most_per_lane, 2 * pace.held)
            elif lasted > SLOW_REFILL_SECONDS:
                pace.held = min(pace.held, max(self._first_share, pace.held // 2))

    @property
    def next_expiry(self) -> float:
        """When the first waiting assignment ceases to be fresh."""
        return min(
            (lane.waiting[0][0] for lane in self._lanes.values() if lane.waiting), default=inf
        )

    def drop_expired(self, now: float) -> list[Assignment]:
        """Remove and return the assignments that are no longer fresh.

        Their lanes may claim less. If one of them could have been sent, memory holds too many.
        """
        dropped: list[Assignment] = []
        if now < self._fresh_until:
            return dropped
        holds_too_many = False
        for endpoint, lane in list(self._lanes.items()):
            expired = []
            while lane.waiting and lane.waiting[0][0] <= now:
                expired.append(lane.waiting.popleft()[1])
            if expired:
                holds_too_many |= endpoint in self.ready
                pace = self._paces.setdefault(endpoint, _Pace(self._first_share))
                pace.held = max(self._cap, min(pace.held, lane.load - len(expired)))
                self._dropped(endpoint, lane, len(expired))
            dropped += expired
        self._fresh_until = self.next_expiry
        if holds_too_many:
            self._most_held, self._short_since = max(self.capacity.attempts, self.load // 2), None
        return dropped

    def drop_waiting(self) -> list[Assignment]:
        dropped: list[Assignment] = []
        for endpoint, lane in list(self._lanes.items()):
            waiting = [assignment for _, assignment in lane.waiting]
            lane.waiting.clear()
            self._dropped(endpoint, lane, len(waiting))
            dropped += waiting
        return dropped

    def _dropped(self, endpoint: Lane, lane: _Lane, count: int) -> None:
        if not lane.waiting:
            self.ready.pop(endpoint, None)
        self.waiting -= count
        self.free(endpoint, count)

    @property
    def room(self) -> int:
        """How many more assignments memory may hold."""
        return max(0, self._most_held - self.load)

    @property
    def is_short_of_room(self) -> bool:
        """Whether memory has room for less than what is read at once."""
        return self.room < min(HANDED_OVER_AT_ONCE, self._most_held // 2)

    def adjust_room(self) -> None:
        """Hold only as much as can be sent before it is outdated, but more beside slow endpoints:
        what waits for them must not keep out the deliveries of others.
        """
        if not self.is_short_of_room:
            self._short_since = None
        elif self._is_held_up():
            self._most_held = min(self.capacity.held, 2 * self._most_held)
            return
        if self.load < self.capacity.attempts:
            self._most_held = self._held_at_first

    def _is_held_up(self) -> bool:
        """Whether memory has been short for a while, because of endpoints that take too long."""
        now = self._clock.monotonic()
        since, before = self._short_since = self._short_since or (now, self._taken)
        if self.ready or now - since < SHORT_OF_MEMORY_SECONDS:
            return False
        return (self._taken - before) * LONGEST_IN_MEMORY_SECONDS < self.load * (now - since)
