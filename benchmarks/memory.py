"""Memory of the idle service, of the busy one, and how much more it needs for a long queue.

One process is both API and worker, as `cuepost serve` is on either store. Also the CPU of a start,
until the greeting that is printed once connections are accepted.

The peak resident memory is measured while it sends a queue of few and of very many deliveries to
the same endpoints. They answer with a delay, so that the service is busy all the time.
"""

import asyncio
import time
from collections.abc import Iterator

from benchmarks.backlog import add_pending
from benchmarks.delivery import cases, fed_case, populated
from benchmarks.environment import Product, product
from benchmarks.figures import Figure, NotRun
from benchmarks.population import pieces
from benchmarks.processes import cpu_seconds, highest_megabytes, resident_megabytes
from benchmarks.receiving import read
from benchmarks.sizes import Sizes
from benchmarks.stores import StoreChoice, on_each_store
from tests.support.history_checker import signature_fits

SLOW = tuple(f"/slow/{number}" for number in range(100))
SETTLED_SECONDS = 3.0
WHOLE = ("serve",)


def measured(sizes: Sizes) -> Iterator[Figure | NotRun]:
    yield from on_each_store("memory", _measured_on, sizes)


def _measured_on(store: StoreChoice, sizes: Sizes) -> Iterator[Figure]:
    rest, starting = _at_rest(store)
    what = f"memory of cuepost on {store.name}, at rest"
    yield Figure(f"memory.{store.key}.rest", what, "MB", rest)
    what = f"CPU of cuepost on {store.name}, from its start until it takes requests"
    yield Figure(f"memory.{store.key}.start", what, "s", starting)
    what = f"memory of cuepost on {store.name}, under load"
    yield Figure(f"memory.{store.key}.load", what, "MB", _under_load(store, sizes))
    few = _while_sending(store, sizes, sizes.few_pending)
    many = _while_sending(store, sizes, sizes.many_pending)
    raw = {f"with {sizes.few_pending:,} pending": few, "more": many - few}
    what = f"memory on {store.name} while sending, {sizes.many_pending:,} pending"
    yield Figure(f"memory.{store.key}.pending", what, "MB", many, raw)


def _at_rest(store: StoreChoice) -> tuple[float, float]:
    """Megabytes when idle, and CPU seconds of the start; the schema already exists."""
    with product(store, halves=WHOLE) as it:
        it.stop()
        it.start(WHOLE)
        starting = cpu_seconds(it.pids)
        time.sleep(SETTLED_SECONDS)
        return resident_megabytes(it.pids), starting


def _under_load(store: StoreChoice, sizes: Sizes) -> float:
    """Megabytes after two rounds of the first case of `delivery`, in batches."""
    case = next(cases(sizes))
    with populated(store, case, 2, halves=WHOLE) as it:
        projects = it.populated.in_turn()
        memory = [
            fed_case(it, part, case)["app MB"] for part in pieces(projects, len(projects) // 2)
        ]
        it.proved()
    return max(memory)


def _while_sending(store: StoreChoice, sizes: Sizes, pending: int) -> float:
    """The memory of the process that sends, because an API process does not read the queue."""
    with product(store, paths=SLOW, halves=()) as it:
        each = -(-pending // len(SLOW))
        asyncio.run(add_pending(it.settings, it.populated, dict.fromkeys(SLOW, each)))
        it.start((store.sending,))
        it.receiver.wait_for(1)
        until = time.monotonic() + sizes.watched_seconds
        most = 0.0
        while time.monotonic() < until:
            most = max(most, highest_megabytes(it.pids[0]))
            time.sleep(0.2)
        it.kill()
        _require_well_sent(it)
    return most


def _require_well_sent(it: Product) -> None:
    """Verifies that it was busy all the time, and that its requests were signed."""
    it.receiver.end()
    populated = it.populated
    seen = [read(at, raw, populated.webhook_of) for at, raw in it.receiver.seen]
    assert seen, "nothing was sent"
    for each in seen:
        assert signature_fits(each, [populated.secret_of[each.webhook_id]]), each.headers
    once = {(each.webhook_id, each.headers["webhook-id"]) for each in seen}
    assert len(once) == len(seen), "something was sent twice"
