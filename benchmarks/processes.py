"""What processes used of the machine, as the kernel counts it."""

import os
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pids: Iterable[int]) -> float:
    """Of these processes and all below them, of those that have ended by now as well."""
    return sum(map(_ticks, _with_descendants(pids))) / _TICKS


def resident_megabytes(pids: Iterable[int]) -> float:
    """Now, of these processes and all below them; pages that they share count for each."""
    return sum(_status(pid, "VmRSS") for pid in _with_descendants(pids))


def unshared_megabytes(pids: Iterable[int]) -> float:
    """Now; what processes share counts once, divided among them."""
    return sum(map(_proportional, _with_descendants(pids)))


def highest_megabytes(pid: int) -> float:
    """The most that was resident at any time since the start."""
    return _status(pid, "VmHWM")


def cores() -> list[int]:
    return sorted(os.sched_getaffinity(0))


def pin(pids: Iterable[int], chosen: Iterable[int]) -> None:
    """These processes, with all their threads and children so far, run on these cores alone."""
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
    """The fields behind the name of the program; nothing for a process that is gone."""
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
