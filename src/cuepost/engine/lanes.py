"""Which endpoints this worker sends to: all of an embedded store, or its share of them."""

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple
from uuid import UUID

from cuepost.engine.lane_board import LaneBoard
from cuepost.engine.worker_lease import WorkerLease
from cuepost.ports.dispatch import Claimed, DeliveryQueue, Lane, Share
from cuepost.tuning import (
    IDLE_LANE_CHECK_SECONDS,
    IDLE_LANE_KEPT_SECONDS,
    IDLE_LANES_KEPT,
    LEAVING_LANE_CHECK_SECONDS,
)


class Accepting(NamedTuple):
    """Lanes whose new deliveries other processes lease to this worker, and its share then."""

    lanes: frozenset[Lane]
    share: Share | None


class Lanes:
    """The lanes that this worker owns, and those that it holds in the store.

    Without a share it is the only worker: it owns all lanes, and none has to be held.
    """

    def __init__(self, lease: WorkerLease, board: LaneBoard, share: Share | None) -> None:
        self._lease = lease
        self._board = board
        self.share = share
        # With the monotonic time at which each lane was last seen to have work.
        self._held: dict[Lane, float] = {}
        self._next_idle_check = 0.0
        # Lanes that the next claim releases unless they have work.
        self._idle: set[Lane] = set()
        self._accepting = Accepting(frozenset(), share)
        # Called with lanes that were released for the worker that owns them.
        self.announce: Callable[[Collection[Lane]], None] = lambda _: None

    def owns(self, lane: Lane) -> bool:
        """Whether this worker is the one that sends to the endpoint."""
        return self.share is None or self.share.has(lane)

    def holds(self, lane: Lane) -> bool:
        """Whether no other worker can send to the endpoint now."""
        return lane in self._held and self.owns(lane)

    def share_with(self, live: Sequence[UUID]) -> bool:
        """Take this worker's share among the live workers; return True if the share has changed.

        Lanes outside the share are released as soon as their deliveries in memory are sent.
        """
        worker, before = self._lease.worker, self.share
        if before is not None and worker in live:
            self.share = Share(live.index(worker), len(live))
        if self.share == before:
            return False
        self._next_idle_check = 0.0
        return True

    def start_over(self) -> None:
        """The worker has a new id, and holds nothing."""
        self._held.clear()
        self._idle.clear()
        self._accepting = self._accepting._replace(lanes=frozenset())

    def leave(self) -> None:
        """Take no more deliveries for any lane."""
        self._held.clear()

    def idle(self, now: float) -> set[Lane]:
        """Lanes to release; no reservation is made in them from now on."""
        if now >= self._next_idle_check:
            self._collect_idle(now)
        return set(self._idle)

    def _collect_idle(self, now: float) -> None:
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

    async def accept(
        self, queue: DeliveryQueue, claimed: Claimed, idle: Collection[Lane], more: Collection[Lane]
    ) -> Accepting:
        """In the transaction of a claim: let others hand over what comes for held lanes.

        `more` are lanes with deliveries left in the store, which are older.
        """
        is_same_share = self.share == self._accepting.share
        if self.share is None or (is_same_share and not (claimed.held or idle or more)):
            return self._accepting
        before = self._accepting.lanes
        kept = before.difference(idle)
        if not is_same_share:
            kept = frozenset(filter(self.owns, kept))
        lanes = kept.union(filter(self.owns, claimed.held)).difference(more)
        closed = before - lanes - (set(idle) - claimed.held)
        await queue.accept(self._lease.worker, lanes - before, closed)
        return Accepting(lanes, self.share)

    def committed(
        self, claimed: Claimed, idle: Collection[Lane], accepting: Accepting, at: float
    ) -> None:
        """The claim is in the store."""
        if self.share is None:
            return
        self._accepting = accepting
        self._idle.difference_update(idle)
        self._held |= dict.fromkeys(claimed.held, at)
        if let_go := [lane for lane in idle if not self.owns(lane)]:
            self.announce(let_go)
