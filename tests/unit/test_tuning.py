"""Numbers that depend on each other are checked before the engine starts."""

import pytest

from cuepost import tuning

BREAKS: dict[str, dict[str, float]] = {
    "a lease outlives two heartbeats": {"HEARTBEATS_PER_LEASE": 2},
    "idle lanes are looked at before they are let go": {"IDLE_LANE_KEPT_SECONDS": 1.0},
    "nothing in memory outlives a lease": {
        "LONGEST_IN_MEMORY_SECONDS": 10.0,
        "LATEST_ANSWER_SECONDS": 11.0,
        "WATCHDOG_SECONDS": 3.0,
    },
    "a late answer is older than what may be in memory, and the lease is older still": {
        "LATEST_ANSWER_SECONDS": 1.0
    },
    "a full scan comes before a poll": {"LONGEST_WITHOUT_SCAN_SECONDS": 1.0},
    "workers that share poll more often than one alone": {"POLL_ALONE_SECONDS": 0.9},
    "a quick refill is quicker than a slow one": {"QUICK_REFILL_SECONDS": 0.2},
    "an endpoint's first share is no less than its attempts": {"FIRST_SHARE_PER_SLOT": 0},
    "memory holds more than is in flight": {"HELD_PER_ATTEMPT": 1},
    "there is room for what is in flight among the unrecorded": {"UNRECORDED_PER_ATTEMPT": 1},
    "waiting batches may be larger": {"MILESTONES_WHILE_FREE": 500},
    "on SQLite results keep up with milestones": {"MILESTONES_AT_ONCE": 501},
    "groups on SQLite wait less": {"LONGEST_WAIT_ALONE_SECONDS": 0.1},
    "a group is written before its memory is stale": {"LONGEST_WAIT_SECONDS": 1.0},
    "a stop tries to record more than once": {"PAUSE_AFTER_FAILURE_SECONDS": 5.0},
    "a stall is noticed after what may be in memory has gone back": {"CHECKS_UNTIL_STALLED": 2},
    "a crash is postponed past what may be in memory": {"PAUSE_AFTER_CRASH_SECONDS": 1.0},
    "as many endpoints stay prepared as are promised": {"PREPARED_TARGETS": 19_999},
}


def test_the_numbers_agree() -> None:
    tuning.check()


@pytest.mark.parametrize("relation", BREAKS)
def test_a_relation_that_does_not_hold_is_named(
    relation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in BREAKS[relation].items():
        monkeypatch.setattr(tuning, name, value)
    assert relation in tuning.broken_relations()
    with pytest.raises(tuning.BadTuning, match=relation):
        tuning.check()


def test_every_relation_is_broken_by_a_test(monkeypatch: pytest.MonkeyPatch) -> None:
    found: set[str] = set()
    for changes in BREAKS.values():
        with monkeypatch.context() as patch:
            for name, value in changes.items():
                patch.setattr(tuning, name, value)
            found.update(tuning.broken_relations())
    assert found == set(BREAKS)
