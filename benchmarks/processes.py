"""CPU and memory of processes, as the kernel counts them."""

import os
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pids: Iterable[int]) -> float:
    """CPU of these processes and all their descendants, including ended ones."""
    return sum(map(_ticks, _with_descendants(pids))) / _TICKS


def resident_megabytes(pids: Iterable[int]) -> float:
    """Resident memory of these processes and their descendants; shared pages count for each."""
    return sum(_status(pid, "VmRSS") for pid in _with_descendants(pids))


def unshared_megabytes(pids: Iterable[int]) -> float:
    """Proportional memory: shared pages are divided among the processes."""
    return sum(map(_proportional, _with_descendants(pids)))


def highest_megabytes(pid: int) -> float:
    """Peak resident memory since the start."""
    return _status(pid, "VmHWM")


def cores() -> list[int]:
    return sorted(os.sched_getaffinity(0))


def pin(pids: Iterable[int], chosen: Iterable[int]) -> None:
    """Pins these processes, with their current threads and children, to these cores."""
    allowed = set(chosen)
    for pid in _with_descendants(pids):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(ProcessLookupError):
                os.sched_setaffinity(int(thread.name), allowed)


def _with_descendants(pids: Iterable[int]) -> list[int]:
    children: dict[int, list[int]] = defaultdict(list)
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and (fields := _stat(int(folder.name))):
            children[int(fields[1])].append(int(folder.name))
    found = list(pids)
    for pid in found:
        found += children[pid]
    return found


def _stat(pid: int) -> list[str]:
    """The fields after the program's name; empty for a process that has ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return []


def _ticks(pid: int) -> int:
    return sum(map(int, _stat(pid)[11:15]))


def _status(pid: int, name: str) -> float:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(name + ":"):
                return int(line.split()[1]) / 1024
    return 0.0


def _proportional(pid: int) -> float:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    return 0.0
