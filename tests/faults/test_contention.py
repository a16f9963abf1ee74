"""Deliveries go on while others use every core: no silence while something is due.

`CUEPOST_TEST_CONTENTION_ROUNDS` says how many rounds. The scene is the one in which all deliveries
stopped for good about once in fifteen rounds: ten endpoints, four feeders that report milestones in
batches of a hundred, and a busy loop more than there are cores.
"""

import multiprocessing
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import pytest

from benchmarks.environment import product
from benchmarks.stores import SQLITE

ROUNDS = int(os.environ.get("CUEPOST_TEST_CONTENTION_ROUNDS", "1"))
EVENTS = int(os.environ.get("CUEPOST_TEST_CONTENTION_EVENTS", "2000"))
LONGEST_SILENCE_SECONDS = 10.0
LONGEST_ROUND_SECONDS = 900.0
PATHS = [f"/ok{number}" for number in range(10)]
pytestmark = pytest.mark.timeout(86_400)


def spin(until: float) -> None:
    while time.monotonic() < until:
        pass


@contextmanager
def busy_loops(count: int, seconds: float) -> Iterator[None]:
    """They end by themselves, should no one be left to end them."""
    context = multiprocessing.get_context("spawn")
    until = time.monotonic() + seconds
    loops = [context.Process(target=spin, args=(until,), daemon=True) for _ in range(count)]
    for each in loops:
        each.start()
    try:
        yield
    finally:
        for each in loops:
            each.kill()
            each.join()


@pytest.mark.parametrize("number", range(ROUNDS))
def test_deliveries_go_on_beside_busy_loops(number: int) -> None:
    with (
        product(SQLITE, paths=PATHS, projects=EVENTS // len(PATHS)) as it,
        busy_loops((os.cpu_count() or 2) + 1, seconds=LONGEST_ROUND_SECONDS),
    ):
        fed = it.feed(it.populated.in_turn(), 100, connections=4)
        it.wait_for_events(fed.acknowledged)
        history = it.proved()
    assert len(history.deliveries) == EVENTS
    assert not [each for each in history.deliveries if len(each.attempts) != 1]
    arrived = sorted(each.at for each in history.seen)
    longest = max(later - earlier for earlier, later in pairwise(arrived))
    assert longest <= LONGEST_SILENCE_SECONDS
