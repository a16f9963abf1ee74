"""How much faster two workers send a waiting queue than one, on PostgreSQL.

All deliveries are in the store and become due at one instant, when the workers have been running
for a while, so neither the API nor a load generator interferes. If there are enough cores, the
receiver and the database have their own. If not, two workers cannot be twice as fast. Therefore
`without a lack of cores` is computed as well: how much faster two workers would be if only the CPU
per delivery, with one and with two workers, limited them.

With slow receivers, a worker mostly waits, and the number of attempts in flight limits it. That
needs no cores, so the effect of a second worker is measured there.
"""

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta

from benchmarks.backlog import add_pending
from benchmarks.environment import product
from benchmarks.figures import Figure, middle
from benchmarks.processes import cores, pin
from benchmarks.sizes import Sizes
from benchmarks.stores import StoreChoice, postgres

ENOUGH_CORES = 5
# Several for each worker, so that they can be distributed evenly.
ENDPOINTS = 40
START_SECONDS = 25.0
WRITTEN_A_SECOND = 2_000
# The attempts in flight of one worker, where each takes 50 ms.
FEW_IN_FLIGHT = 16


def measured(sizes: Sizes) -> Iterator[Figure]:
    with postgres() as store:
        ones, twos = [], []
        for _ in range(sizes.rounds):
            ones.append(_sent(store, sizes.deliveries, 1))
            twos.append(_sent(store, sizes.deliveries, 2))
        few = sizes.deliveries // 5
        waiting = [_sent(store, few, workers, waiting=True)["rate"] for workers in (1, 2)]
    one, two = middle(ones, "rate"), middle(twos, "rate")
    pinned = len(cores()) >= ENOUGH_CORES
    cpu = "CPU s per 1,000"
    raw = {
        "one worker/s": one["rate"],
        "faster": two["rate"] / one["rate"],
        "without a lack of cores": 2 * one[cpu] / two[cpu],
        "one worker, CPU s per 1,000": one[cpu],
        "two workers, CPU s per 1,000": two[cpu],
        "receiver CPU s per 1,000": two["receiver CPU s per 1,000"],
        "cores": len(cores()),
        "receiver and database on cores of their own": int(pinned),
    }
    yield Figure("workers.two", "two workers on PostgreSQL", "/s", two["rate"], raw)
    text = "two workers on PostgreSQL, receivers that take 50 ms"
    compared = {"one worker/s": waiting[0], "faster": waiting[1] / waiting[0]}
    yield Figure("workers.waiting", text, "/s", waiting[1], compared)


def _sent(
    store: StoreChoice, deliveries: int, workers: int, *, waiting: bool = False
) -> Mapping[str, float]:
    paths = [f"/ok{'-later' if waiting else ''}/{number}" for number in range(ENDPOINTS)]
    settings = {"WORKER_CONCURRENCY": str(FEW_IN_FLIGHT)} if waiting else {}
    each = -(-deliveries // ENDPOINTS)
    with product(store, paths=paths, halves=(), settings=settings) as it:
        due_in = START_SECONDS + each * ENDPOINTS / WRITTEN_A_SECOND
        due = time.time() + due_in
        counts = dict.fromkeys(paths, each)
        it.acknowledged |= asyncio.run(
            add_pending(it.settings, it.populated, counts, timedelta(seconds=due_in))
        )
        of_workers, of_others = _shared_out(cores(), workers)
        pin([*it.receiver.pids, *store.pids], of_others)
        it.start(["worker"] * workers, of_workers)
        assert time.time() < due, "the workers were not up in time"
        # CPU of a worker before that instant does not belong to a delivery.
        time.sleep(max(0.0, due - time.time() - 0.1))
        before = it.usage()
        it.receiver.wait_for(len(it.acknowledged))
        it.wait_until_settled()
        used = it.usage().since(before)
        arrived = it.wait_for_events(it.acknowledged)
        it.proved()
        pin(store.pids, cores())
    seconds = max(arrived.values()) - min(arrived.values())
    return {
        "rate": len(arrived) / seconds,
        "CPU s per 1,000": 1_000 * (used.app + used.store) / len(arrived),
        "receiver CPU s per 1,000": 1_000 * used.receiver / len(arrived),
    }


def _shared_out(all_cores: Sequence[int], workers: int) -> tuple[Sequence[int], Sequence[int]]:
    """Assigns one core to each worker and the others to the rest, if there are enough."""
    if len(all_cores) < ENOUGH_CORES:
        return all_cores, all_cores
    return all_cores[:workers], all_cores[2:]
