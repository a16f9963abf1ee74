"""How much of our code one delivery runs through, from the report of a milestone to its record.

Uses the real HTTP interface and client, in all processes and threads of a service that has
delivered before. Several deliveries are traced one by one, and only functions that all of them call
count: the others are periodic work of the service. `python -m benchmarks.trace` lists the functions
in the order of their calls.
"""

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from http.client import HTTPConnection

from benchmarks import traced_calls
from benchmarks.environment import Product, product
from benchmarks.feeding import acknowledged, batches
from benchmarks.figures import Figure, NotRun
from benchmarks.inside import reported_by
from benchmarks.sizes import SMALL, Sizes
from benchmarks.stores import StoreChoice, on_each_store, stores

DELIVERIES = 5


@dataclass(frozen=True, slots=True)
class Trace:
    """Files below `src/cuepost` with functions in them, in the order of their first call."""

    calls: Sequence[tuple[str, str]]

    @property
    def files(self) -> int:
        return len({file for file, _ in self.calls})

    @property
    def functions(self) -> int:
        return len(self.calls)


def measured(sizes: Sizes) -> Iterator[Figure | NotRun]:
    yield from on_each_store("trace", _measured_on, sizes)


def _measured_on(store: StoreChoice, _: Sizes) -> Iterator[Figure]:
    found = traced(store)
    raw = {"files": float(found.files), "functions": float(found.functions)}
    what = f"functions of ours that one delivery passes on {store.name}"
    yield Figure(f"trace.{store.key}", what, "functions", raw["functions"], raw)


def traced(store: StoreChoice) -> Trace:
    with (
        product(store, projects=1 + DELIVERIES, module=traced_calls.__name__) as it,
        closing(HTTPConnection("127.0.0.1", int(it.settings["PORT"]))) as caller,
    ):
        first, *others = it.populated.in_turn()
        _deliver(it, caller, first)
        found = [_traced(it, caller, each) for each in others]
        it.proved()
    every = set.intersection(*map(set, found))
    return Trace([call for call in found[-1] if call in every])


def _traced(it: Product, caller: HTTPConnection, project: str) -> list[tuple[str, str]]:
    for pid in it.pids:
        os.kill(pid, signal.SIGUSR1)
    _deliver(it, caller, project)
    calls = sorted(call for pid in it.pids for call in reported_by(pid, it.folder))
    # Two processes may have called the same function.
    return list(dict.fromkeys((file, name) for _, file, name in calls))


def _deliver(it: Product, caller: HTTPConnection, project: str) -> None:
    key = {"authorization": f"Bearer {it.populated.service_key}"}
    (body,) = batches([project], 1)
    caller.request("POST", "/v1/milestones", body, key | {"content-type": "application/json"})
    it.acknowledged |= acknowledged(caller.getresponse().read())
    it.receiver.wait_for(len(it.acknowledged))
    it.wait_until_settled()


def main(*keys: str) -> None:
    for key in keys or (None,):
        for store in stores(replace(SMALL, store=key)):
            found = traced(store)
            last = ""
            for file, name in found.calls:
                if file != last:
                    print(file)
                print(f"    {name}")
                last = file
            print(f"{store.name}: {found.files} files, {found.functions} functions\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
