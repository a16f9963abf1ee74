"""The assignments that this worker holds, by endpoint; endpoints take turns.

A lane is ready while it has assignments waiting and fewer attempts in flight than its cap. How many
assignments a lane may hold depends on how fast it sends them: a slow endpoint leaves the memory to
others, and its deliveries wait in the store. A lane with a backlog gets as many at a time as it
sends in a moment, because large claims would delay the small ones of other lanes.
"""

from collections import deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from math import inf

from cuepost.ports.dispatch import Assignment, Lane
from cuepost.tuning import FIRST_SHARE_PER_SLOT, QUICK_REFILL_SECONDS, SLOW_REFILL_SECONDS


@dataclass(slots=True)
class _Lane:
    waiting: deque[tuple[float, Assignment]] = field(default_factory=deque)
    in_flight: int = 0
    reserved: int = 0
    is_ready: bool = False

    @property
    def load(self) -> int:
        return len(self.waiting) + self.in_flight + self.reserved


@dataclass(slots=True)
class _Pace:
    """For a lane with a backlog: how much it may hold, and when it was last filled."""

    held: int
    filled_at: float


class LaneBoard:
    def __init__(self, cap: int, most_per_lane: int) -> None:
        self._cap = cap
        self.most_per_lane = most_per_lane
        self.at_first = min(FIRST_SHARE_PER_SLOT * cap, most_per_lane)
        self._paces: dict[Lane, _Pace] = {}
        self._lanes: dict[Lane, _Lane] = {}
        self._ready: deque[Lane] = deque()
        self._slow: dict[Lane, int] = {}
        # No waiting assignment ceases to be fresh before this.
        self._fresh_until = inf
        # Whether assignments were dropped although their endpoints would have taken them.
        self.holds_too_many = False
        self.load = 0
        # How many assignments have been taken since the start.
        self.taken = 0

    def add(self, assignments: Iterable[Assignment], fresh_until: float) -> None:
        """After `fresh_until` the assignments may be outdated and are not sent."""
        self._fresh_until = min(self._fresh_until, fresh_until)
        for assignment in assignments:
            lane = self._lanes.setdefault(assignment.lane, _Lane())
            lane.waiting.append((fresh_until, assignment))
            self.load += 1
            self._mark_ready(assignment.lane, lane)

    def take(self) -> tuple[float, Assignment] | None:
        """The next assignment of the lane whose turn it is, with the time until it is fresh."""
        if not self._ready:
            return None
        endpoint = self._ready.popleft()
        lane = self._lanes[endpoint]
        lane.is_ready = False
        taken = lane.waiting.popleft()
        lane.in_flight += 1
        self.taken += 1
        if not lane.waiting and endpoint in self._slow:
            self._allow(endpoint, 2 * self._slow[endpoint])
        self._mark_ready(endpoint, lane)
        return taken

    def done(self, endpoint: Lane) -> None:
        lane = self._lanes[endpoint]
        lane.in_flight -= 1
        self.load -= 1
        self._mark_ready(endpoint, lane)
        self._drop_if_empty(endpoint, lane)

    def reserve(self, endpoint: Lane) -> None:
        self._lanes.setdefault(endpoint, _Lane()).reserved += 1
        self.load += 1

    def give_back(self, endpoints: Iterable[Lane]) -> None:
        for endpoint in endpoints:
            lane = self._lanes[endpoint]
            lane.reserved -= 1
            self.load -= 1
            self._drop_if_empty(endpoint, lane)

    @property
    def busy(self) -> Collection[Lane]:
        """The lanes with something in flight, waiting or reserved."""
        return list(self._lanes)

    def load_of(self, endpoint: Lane) -> int:
        lane = self._lanes.get(endpoint)
        return lane.load if lane else 0

    def has_slot(self, endpoint: Lane) -> bool:
        """Whether one more attempt may be in flight."""
        lane = self._lanes.get(endpoint)
        return lane is None or lane.in_flight < self._cap

    def is_blocked(self, endpoint: Lane) -> bool:
        """Whether an assignment waits until another attempt of the lane has ended."""
        lane = self._lanes.get(endpoint)
        return lane is not None and bool(lane.waiting) and not lane.is_ready

    def room_of(self, endpoint: Lane) -> int:
        """How many more assignments this lane may hold."""
        allowed = self._slow.get(endpoint, self.most_per_lane)
        return allowed - self.load_of(endpoint)

    def claimable_of(self, endpoint: Lane) -> int:
        """How many more this lane may claim; 0 while it holds more than half of its share."""
        pace = self._paces.get(endpoint)
        held = self.at_first if pace is None else pace.held
        load = self.load_of(endpoint)
        return min(self.room_of(endpoint), held - load) if 2 * load <= held else 0

    def claimed(self, served: Collection[Lane], done: Iterable[Lane], at: float) -> None:
        """`served` lanes have more in the store; lanes that are `done` do not."""
        for endpoint in done:
            self._paces.pop(endpoint, None)
        for endpoint in served:
            pace = self._paces.get(endpoint)
            if pace is None:
                self._paces[endpoint] = _Pace(self.at_first, at)
            else:
                pace.held = self._adjusted(pace.held, at - pace.filled_at)
                pace.filled_at = at

    @property
    def ready(self) -> int:
        return len(self._ready)

    @property
    def next_expiry(self) -> float:
        """When the first waiting assignment ceases to be fresh."""
        return min(
            (lane.waiting[0][0] for lane in self._lanes.values() if lane.waiting), default=inf
        )

    def drop_expired(self, now: float) -> list[Assignment]:
        """Remove and return the assignments that are no longer fresh."""
        dropped: list[Assignment] = []
        self.holds_too_many = False
        if now < self._fresh_until:
            return dropped
        for endpoint, lane in list(self._lanes.items()):
            before, was_ready = len(dropped), lane.is_ready
            while lane.waiting and lane.waiting[0][0] <= now:
                dropped.append(lane.waiting.popleft()[1])
            if len(dropped) > before:
                self.holds_too_many |= was_ready
                self._allow(endpoint, lane.load)
                self._unmark_ready(endpoint, lane)
        self._fresh_until = self.next_expiry
        self.load -= len(dropped)
        return dropped

    def drop_waiting(self) -> list[Assignment]:
        dropped: list[Assignment] = []
        for endpoint, lane in list(self._lanes.items()):
            dropped += [assignment for _, assignment in lane.waiting]
            lane.waiting.clear()
            self._unmark_ready(endpoint, lane)
        self.load -= len(dropped)
        return dropped

    def _adjusted(self, held: int, lasted: float) -> int:
        if lasted < QUICK_REFILL_SECONDS:
            return min(self.most_per_lane, 2 * held)
        return max(self.at_first, held // 2) if lasted > SLOW_REFILL_SECONDS else held

    def _allow(self, endpoint: Lane, held: int) -> None:
        self._slow[endpoint] = max(self._cap, held)
        if self._slow[endpoint] >= self.most_per_lane:
            del self._slow[endpoint]

    def _mark_ready(self, endpoint: Lane, lane: _Lane) -> None:
        if lane.waiting and lane.in_flight < self._cap and not lane.is_ready:
            lane.is_ready = True
            self._ready.append(endpoint)

    def _unmark_ready(self, endpoint: Lane, lane: _Lane) -> None:
        if lane.is_ready and not lane.waiting:
            lane.is_ready = False
            self._ready.remove(endpoint)
        self._drop_if_empty(endpoint, lane)

    def _drop_if_empty(self, endpoint: Lane, lane: _Lane) -> None:
        if not lane.load:
            del self._lanes[endpoint]
