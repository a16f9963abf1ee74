"""Where the CPU time of a delivery goes: by layer in all threads, and by folder of our own code.

`perf` samples the layers: interpreter, libraries and kernel. It does not see Python's frames, so a
second service, which samples its own frames, gets the same load. Shares of samples are converted to
microseconds with the CPU that the kernel counted for the processes.
"""

import os
import signal
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks import sampled_frames
from benchmarks.delivery import Case, cases, fed_case, populated
from benchmarks.environment import Product
from benchmarks.figures import Figure, NotRun, attempted
from benchmarks.inside import reported_by
from benchmarks.perf_samples import NoPerf, Sample, by_layer, require_perf, sampling
from benchmarks.processes import cpu_seconds
from benchmarks.sizes import Sizes
from benchmarks.stores import StoreChoice, stores

PROFILED = ("plain.keep-alive", "single")


@dataclass(frozen=True, slots=True)
class Process:
    """A process of the service, with its CPU per delivery."""

    half: str
    microseconds: float
    samples: Sequence[Sample]

    @property
    def in_main_thread(self) -> float:
        main = sum(each.pid == each.thread for each in self.samples)
        return self.microseconds * main / len(self.samples)


def measured(sizes: Sizes) -> Iterator[Figure | NotRun]:
    try:
        require_perf()
    except NoPerf as error:
        yield NotRun("profile", "profile", str(error))
        return
    for store in stores(sizes):
        for case in cases(sizes):
            if case.key in (sizes.cases or PROFILED):
                figures = _measured(store, case)
                yield from attempted(f"profile.{store.key}.{case.key}", case.name, figures)


def _measured(store: StoreChoice, case: Case) -> Iterator[Figure]:
    frames = _noted_frames(store, case)
    for process in _sampled(store, case):
        key = f"{store.key}.{case.key}.{process.half}"
        what = f"{store.name}, {case.fed}, `{process.half}`"
        raw = by_layer(process.samples, process.microseconds)
        yield Figure(f"profile.{key}", what, "µs", process.microseconds, raw)
        main = process.in_main_thread
        raw = by_folder(frames[process.half], main)
        yield Figure(f"frames.{key}", f"{what}, main thread", "µs", main, raw)


def _sampled(store: StoreChoice, case: Case) -> list[Process]:
    with _warm(store, case) as (it, projects):
        before = [cpu_seconds([pid]) for pid in it.pids]
        with sampling(it.pids) as found:
            fed_case(it, projects, case)
            used = [cpu_seconds([pid]) - then for pid, then in zip(it.pids, before, strict=True)]
        processes = [
            Process(
                service.half,
                1_000_000 * seconds / len(projects),
                [each for each in found.samples if each.pid == service.pid],
            )
            for service, seconds in zip(it.services, used, strict=True)
        ]
        it.proved()
    return processes


def _noted_frames(store: StoreChoice, case: Case) -> dict[str, Mapping[str, int]]:
    """Samples by file, of the main thread of each process."""
    with _warm(store, case, sampled_frames.__name__) as (it, projects):
        for pid in it.pids:
            os.kill(pid, signal.SIGUSR1)
        fed_case(it, projects, case)
        found = {each.half: reported_by(each.pid, it.folder) for each in it.services}
        it.proved()
    return found


@contextmanager
def _warm(
    store: StoreChoice, case: Case, module: str = "cuepost"
) -> Iterator[tuple[Product, Sequence[str]]]:
    """A warmed-up service, and the load for the measurement."""
    with populated(store, case, 2, module=module) as it:
        projects = it.populated.in_turn()
        half = len(projects) // 2
        fed_case(it, projects[:half], case)
        yield it, projects[half:]


def by_folder(frames: Mapping[str, int], microseconds: float) -> Mapping[str, float]:
    """Microseconds, in proportion to samples; the most expensive come first."""
    counts: Counter[str] = Counter()
    for file, count in frames.items():
        counts[sampled_frames.layer_of(file)] += count
    return {name: microseconds * n / counts.total() for name, n in counts.most_common()}
