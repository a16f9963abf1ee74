"""The board of lanes: caps hold, endpoints take turns, and the loads add up."""

from collections import Counter
from math import inf

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from cuepost.engine.lane_board import Capacity, LaneBoard
from cuepost.ports.dispatch import Assignment, Lane
from cuepost.testing import VirtualClock
from tests.support.records import Records

CAP, MOST = 3, 10
LANES = list(range(1, 5))
RECORDS = Records()


def assignment(lane: Lane) -> Assignment:
    return RECORDS.assignment(RECORDS.delivery(RECORDS.id()), lane=lane)


def board_of(most_per_lane: int) -> LaneBoard:
    return LaneBoard(Capacity(most_per_lane, CAP), VirtualClock())


def filled(**lanes: int) -> LaneBoard:
    board = board_of(MOST)
    for name, count in lanes.items():
        board.add([assignment(LANES[int(name[1:])]) for _ in range(count)], 0.0)
    return board


def taken(board: LaneBoard) -> list[Lane]:
    found = []
    while (each := board.take()) is not None:
        found.append(each[1].lane)
    return found


def test_lanes_take_turns_and_stop_at_their_cap() -> None:
    board = filled(_0=5, _1=2)
    assert taken(board) == [LANES[0], LANES[1], LANES[0], LANES[1], LANES[0]]
    board.done(LANES[0])
    assert taken(board) == [LANES[0]]


def test_what_has_waited_too_long_is_taken_out_and_its_lane_may_hold_less() -> None:
    board = filled(_0=8)
    busy = [board.take() for _ in range(CAP)]
    board.add([assignment(LANES[0])], 1.0)
    assert board.next_expiry == 0.0

    dropped = board.drop_expired(0.0)

    assert len(dropped) == 8 - CAP
    assert board.load == CAP + 1
    assert board.next_expiry == 1.0
    assert board.claimable_of(LANES[0]) == 0
    assert board.claimable_of(LANES[1]) == MOST
    assert all(busy)


def test_memory_holds_too_many_if_an_endpoint_with_a_free_slot_was_not_reached_in_time() -> None:
    slow = filled(_0=8)
    for _ in range(CAP):
        slow.take()
    many = filled(_0=1, _1=1)
    many.add([assignment(LANES[2])], 5.0)
    found = [
        (len(board.drop_expired(now)), board.room + board.load)
        for board, now in ((slow, 0.0), (many, 1.0), (many, 2.0), (many, 5.0))
    ]
    assert found == [(8 - CAP, 2 * MOST), (2, MOST), (0, MOST), (1, MOST)]


def test_a_slow_lane_may_claim_more_again_once_it_gets_through_what_it_has() -> None:
    board, lane = filled(_0=8), LANES[0]
    for _ in range(CAP):
        board.take()
    board.drop_expired(0.0)
    claimable = []
    while board.claimable_of(lane) + board.load_of(lane) < MOST:
        board.done(lane)
        board.add([assignment(lane)], 0.0)
        # That it was refilled quickly does not show that it sends quickly.
        board.claimed([lane], (), 0.0)
        board.take()
        claimable.append(board.claimable_of(lane))
    assert claimable == [3, 7]


def test_a_slow_lane_may_not_claim_more_because_its_slots_are_refilled_one_by_one() -> None:
    board, lane = board_of(100), LANES[0]
    board.add([assignment(lane) for _ in range(8)], 0.0)
    for _ in range(CAP):
        board.take()
    board.drop_expired(0.0)
    for at in (0.01, 0.02, 0.03):
        board.claimed([lane], (), at)
    assert board.claimable_of(lane) + board.load_of(lane) == CAP


def test_an_empty_lane_leaves_nothing_behind() -> None:
    board = filled(_0=1)
    board.reserve(LANES[1])
    board.take()
    board.done(LANES[0])
    board.free(LANES[1])
    assert (board.load, board._lanes, len(board.ready), board.next_expiry) == (0, {}, 0, inf)


def test_of_a_long_queue_a_lane_gets_more_the_quicker_it_sends() -> None:
    board, lane, now = board_of(100), LANES[0], 0.0
    got = []
    for _ in range(5):
        got.append(board.claimable_of(lane))
        now += 0.049
        board.claimed([lane], (), now)
    assert got == [12, 12, 24, 48, 96]
    now += 0.051
    board.claimed([lane], (), now)
    assert board.claimable_of(lane) == 100
    for _ in range(5):
        now += 0.201
        board.claimed([lane], (), now)
    assert board.claimable_of(lane) == 12


def test_a_lane_gets_more_of_its_queue_once_it_is_half_empty() -> None:
    board, lane = board_of(100), LANES[0]
    board.add([assignment(lane) for _ in range(12)], 0.0)
    board.claimed([lane], (), 0.0)
    claimable = []
    for _ in range(7):
        claimable.append(board.claimable_of(lane))
        board.take()
        board.done(lane)
    assert claimable == [0, 0, 0, 0, 0, 0, 6]


def test_a_lane_whose_queue_is_done_with_begins_again_and_is_forgotten() -> None:
    board, lane = board_of(100), LANES[0]
    for _ in range(3):
        board.claimed([lane], (), 0.0)
    assert board.claimable_of(lane) == 48
    board.claimed((), [lane], 0.0)
    assert board.claimable_of(lane) == 12
    assert not board._paces


class Board(RuleBasedStateMachine):
    """Whatever is done with it, in whatever order."""

    def __init__(self) -> None:
        super().__init__()
        self.board = board_of(MOST)
        self.now = 0.0
        self.waiting: list[Assignment] = []
        self.in_flight: Counter[Lane] = Counter()
        self.reserved: Counter[Lane] = Counter()

    @rule(lane=st.sampled_from(LANES), count=st.integers(1, 6))
    def add(self, lane: Lane, count: int) -> None:
        made = [assignment(lane) for _ in range(count)]
        self.board.add(made, self.now)
        self.waiting += made

    @rule()
    def take(self) -> None:
        has_capacity = sum(self.in_flight.values()) < MOST
        assert self.board.has_capacity_for() == has_capacity
        taken = self.board.take()
        found = taken[1] if taken else None
        startable = [
            each for each in self.waiting if has_capacity and self.in_flight[each.lane] < CAP
        ]
        assert (found is None) == (not startable)
        if found is not None:
            of_lane = [each for each in self.waiting if each.lane == found.lane]
            assert found is of_lane[0]
            self.waiting.remove(found)
            self.in_flight[found.lane] += 1

    @precondition(lambda self: any(self.in_flight.values()))
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        lane = data.draw(st.sampled_from([lane for lane in LANES if self.in_flight[lane]]))
        self.board.done(lane)
        self.in_flight[lane] -= 1

    @rule(lane=st.sampled_from(LANES))
    def reserve(self, lane: Lane) -> None:
        has_room = self.board.room > 0 and self.board.load_of(lane) < MOST
        assert self.board.reserve(lane) == has_room
        self.reserved[lane] += has_room

    @precondition(lambda self: any(self.reserved.values()))
    @rule(data=st.data())
    def give_back(self, data: st.DataObject) -> None:
        lane = data.draw(st.sampled_from([lane for lane in LANES if self.reserved[lane]]))
        self.board.free(lane)
        self.reserved[lane] -= 1

    @rule()
    def a_second_passes(self) -> None:
        self.now += 1.0

    @rule(age=st.integers(0, 3))
    def drop_expired(self, age: int) -> None:
        dropped = {id(each) for each in self.board.drop_expired(self.now - age)}
        self.waiting = [each for each in self.waiting if id(each) not in dropped]
        expiry = self.board.next_expiry
        assert expiry > self.now - age

    @rule()
    def drop_waiting(self) -> None:
        dropped = self.board.drop_waiting()
        assert {id(each) for each in dropped} == {id(each) for each in self.waiting}
        self.waiting = []

    @invariant()
    def the_cap_holds(self) -> None:
        assert all(count <= CAP for count in self.in_flight.values())

    @invariant()
    def loads_add_up(self) -> None:
        waiting = Counter(each.lane for each in self.waiting)
        loads = {lane: waiting[lane] + self.in_flight[lane] + self.reserved[lane] for lane in LANES}
        assert {lane: self.board.load_of(lane) for lane in LANES} == loads
        assert self.board.load == sum(loads.values())
        assert self.board.waiting == len(self.waiting)
        assert self.board.in_flight == sum(self.in_flight.values())

    @invariant()
    def a_lane_is_ready_just_when_it_can_go_on(self) -> None:
        can = {each.lane for each in self.waiting if self.in_flight[each.lane] < CAP}
        assert set(self.board.ready) == can


TestBoard = Board.TestCase
TestBoard.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
