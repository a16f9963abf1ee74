"""Samples of `perf`: where CPU time goes in C code and in the kernel, in all threads.

The event is the kernel's cpu-clock, since virtual machines have no hardware counters. Call chains
are read only in the kernel, because most libraries are built without frame pointers. So a sample in
user space shows the running library, but not its caller.
"""

import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

SAMPLES_A_SECOND = 999
TIMEOUT_SECONDS = 120.0
ATTACH_SECONDS = 0.5
KERNEL = re.compile(r"\[(kernel|guest)|^\[k\]|\.ko\b")

# The first with a function in the call chain counts; `write` may be to a socket or to a file.
KERNEL_LAYERS = (
    ("kernel: send", r"tcp_sendmsg|sock_write_iter|sys_send(to|msg)|sock_sendmsg"),
    ("kernel: receive", r"tcp_recvmsg|sock_read_iter|sys_recv(from|msg)|sock_recvmsg"),
    ("kernel: sync to disk", r"do_fsync|sys_f(data)?sync|vfs_fsync"),
    ("kernel: write to the store (pwrite)", r"sys_pwrite"),
    ("kernel: write to the log", r"ksys_write|sys_write"),
    ("kernel: read from the store (pread)", r"sys_pread"),
    ("kernel: epoll", r"epoll"),
    ("kernel: wake and wait (futex)", r"futex|sys_sched_yield"),
    ("kernel: page faults", r"page_fault"),
)
# By the path of the running library; `libc` copies memory for all the others.
LIBRARIES = (
    ("SQLite", r"/libsqlite3"),
    ("SQLite, Python's binding", r"/_sqlite3\."),
    ("interpreter", r"/libpython|/python3?(\.\d+)?$"),
    ("event loop", r"/uvloop/|/_asyncio\.|/select\."),
    ("asyncpg", r"/asyncpg/"),
    ("HTTP parser", r"/httptools/"),
    ("OpenSSL", r"/libcrypto|/libssl|/_ssl\.|/_hashlib\."),
    ("libc", r"/libc[.-]|/ld-|\[vdso\]|/libpthread|/libm[.-]"),
)
OTHER_KERNEL, OTHER_LIBRARY = "kernel: other", "other C extensions"
COLLECTOR = "interpreter: garbage collection"
_COLLECTS = re.compile(
    r"^(gc_collect|visit_|subtract_refs|deduce_unreachable|untrack_|.*_traverse)"
)
_KERNEL_LAYERS = [(name, re.compile(pattern)) for name, pattern in KERNEL_LAYERS]
_LIBRARIES = [(name, re.compile(pattern)) for name, pattern in LIBRARIES]
_HEAD = re.compile(r"^\s*(\d+)/(\d+)\s*$")
_FRAME = re.compile(r"^\s+[0-9a-f]+ (.+) \((.+)\)$")


class NoPerf(Exception):
    """`perf` is not installed here, or the kernel does not allow it."""


@dataclass(frozen=True, slots=True)
class Sample:
    """`frames` are functions with the file that each is in, the innermost first."""

    pid: int
    thread: int
    frames: Sequence[tuple[str, str]]


@dataclass(slots=True)
class Sampled:
    """The samples; available after the end."""

    samples: list[Sample] = field(default_factory=list)


@contextmanager
def sampling(pids: Sequence[int]) -> Iterator[Sampled]:
    """Samples all threads of these processes, including ones that start later; raises NoPerf."""
    require_perf()
    found = Sampled()
    with tempfile.TemporaryDirectory(prefix="cuepost-perf-") as folder:
        data = Path(folder, "data")
        perf = subprocess.Popen(_record(data, pids), stderr=subprocess.PIPE)
        # `perf` does not report when it has begun.
        time.sleep(ATTACH_SECONDS)
        try:
            yield found
        finally:
            perf.send_signal(signal.SIGINT)
            _, said = perf.communicate(timeout=TIMEOUT_SECONDS)
        if not data.exists():
            raise NoPerf(said.decode(errors="replace")[-300:])
        found.samples = list(parsed(_script(data).splitlines()))


def require_perf() -> None:
    if shutil.which("perf") is None:
        raise NoPerf("`perf` is not installed (linux-perf of Debian)")
    tried = subprocess.run(
        ["perf", "record", "-q", "-e", "cpu-clock", "-o", "/dev/null", "--", "true"],
        check=False,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
    )
    if tried.returncode:
        raise NoPerf(f"`perf` does not work here: {tried.stderr.strip()[:200]}")


def _record(data: Path, pids: Sequence[int]) -> list[str]:
    command = ["perf", "record", "-q", "-e", "cpu-clock", "-F", str(SAMPLES_A_SECOND)]
    command += ["-g", "-o", str(data)]
    return [*command, "-p", ",".join(map(str, pids))]


def _script(data: Path) -> str:
    return subprocess.run(
        ["perf", "script", "-i", str(data), "-F", "pid,tid,ip,sym,dso"],
        check=True,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
    ).stdout


def parsed(lines: Iterable[str]) -> Iterator[Sample]:
    """Parses `perf script`: a line with process and thread, the frames, an empty line."""
    head: tuple[int, int] | None = None
    frames: list[tuple[str, str]] = []
    for line in (*lines, ""):
        if found := _HEAD.match(line):
            head, frames = (int(found[1]), int(found[2])), []
        elif found := _FRAME.match(line):
            frames.append((found[1], found[2]))
        elif head is not None:
            yield Sample(*head, frames)
            head = None


def layer_of(sample: Sample) -> str:
    function, file = sample.frames[0] if sample.frames else ("", "")
    if KERNEL.search(file):
        chain = " ".join(name for name, place in sample.frames if KERNEL.search(place))
        return next((name for name, known in _KERNEL_LAYERS if known.search(chain)), OTHER_KERNEL)
    layer = next((name for name, known in _LIBRARIES if known.search(file)), OTHER_LIBRARY)
    return COLLECTOR if layer == "interpreter" and _COLLECTS.match(function) else layer


def by_layer(samples: Sequence[Sample], microseconds: float) -> Mapping[str, float]:
    """Microseconds, in proportion to samples; the most expensive come first."""
    counts = Counter(map(layer_of, samples))
    return {name: microseconds * n / len(samples) for name, n in counts.most_common()}
