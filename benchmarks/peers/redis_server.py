"""A Redis for the peers that need one: from PATH, or from Debian's packages.

The packages are not installed but extracted into `.cache`, which does not need root.
"""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.environment import ROOT
from tests.support.service_process import free_port

UNPACKED = ROOT / ".cache" / "redis"
PACKAGES = ("redis-tools", "libatomic1", "libjemalloc2", "liblzf1")
NAMES = ("redis-server", "valkey-server", "redis-check-rdb")
FETCH_SECONDS = 120
TIMEOUT_SECONDS = 20.0


class NoRedis(Exception):
    """No Redis server is available on this machine."""


@dataclass(frozen=True, slots=True)
class Program:
    """The program is a server or a file checker, depending on the name it is called by."""

    path: Path
    libraries: str = ""

    def started(self, *arguments: str, output: int | None = None) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            ["redis-server", *arguments],
            executable=self.path,
            env=os.environ | ({"LD_LIBRARY_PATH": self.libraries} if self.libraries else {}),
            stdin=subprocess.DEVNULL,
            stdout=output or subprocess.DEVNULL,
            text=True,
        )

    def version(self) -> str:
        reported, _ = self.started("--version", output=subprocess.PIPE).communicate(
            timeout=TIMEOUT_SECONDS
        )
        return reported.partition("v=")[2].partition(" ")[0]


@dataclass(frozen=True, slots=True)
class RedisServer:
    url: str
    pids: list[int]


@contextmanager
def redis_server() -> Iterator[RedisServer]:
    """Syncs to disk every second, as is usual where jobs must not be lost."""
    program, port = found(), free_port()
    with tempfile.TemporaryDirectory(prefix="cuepost-redis-") as folder:
        settings = {"--port": str(port), "--bind": "127.0.0.1", "--dir": folder, "--save": ""}
        settings |= {"--appendonly": "yes", "--appendfsync": "everysec"}
        process = program.started(*(each for pair in settings.items() for each in pair))
        try:
            _wait_until_up(port, process)
            yield RedisServer(f"redis://127.0.0.1:{port}/0", [process.pid])
        finally:
            process.terminate()
            process.wait(TIMEOUT_SECONDS)


def redis_version() -> str:
    program = _at_hand()
    return program.version() if program else "none"


def found() -> Program:
    """Raises NoRedis."""
    if _at_hand() is None:
        _fetch()
    program = _at_hand()
    if program is None or not program.version():
        raise NoRedis("no Redis here")
    return program


def _at_hand() -> Program | None:
    for name in NAMES:
        if path := shutil.which(name):
            return Program(Path(path))
    return _unpacked()


def _unpacked() -> Program | None:
    libraries = ":".join(sorted({str(each.parent) for each in UNPACKED.rglob("*.so*")}))
    for name in NAMES:
        path = UNPACKED / "usr" / "bin" / name
        if path.is_file():
            return Program(path, libraries)
    return None


def _fetch() -> None:
    """Ignores packages that cannot be fetched."""
    if not shutil.which("apt-get") or not shutil.which("dpkg"):
        return
    UNPACKED.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        _try("apt-get", "download", *PACKAGES, folder=folder)
        if not any(Path(folder).iterdir()) and os.geteuid() == 0:
            _try("apt-get", "update", folder=folder)
            _try("apt-get", "download", *PACKAGES, folder=folder)
        for package in Path(folder).glob("*.deb"):
            _try("dpkg", "-x", str(package), str(UNPACKED), folder=folder)


def _try(*command: str, folder: str) -> None:
    subprocess.run(command, cwd=folder, check=False, capture_output=True, timeout=FETCH_SECONDS)


def _wait_until_up(port: int, process: "subprocess.Popen[str]") -> None:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except ConnectionRefusedError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise NoRedis("Redis did not start") from None
            time.sleep(0.02)
        else:
            return
