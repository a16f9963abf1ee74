"""Describes the machine, its load, and the versions of all components."""

import os
import platform
import sqlite3
import ssl
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import cuepost
from benchmarks.peers.environment import peer_versions
from benchmarks.peers.redis_server import redis_version
from benchmarks.processes import cores
from tests.support.postgres_binaries import server_binaries

PACKAGES = ("asyncpg", "httptools", "msgspec", "sqlalchemy", "starlette", "uvicorn", "uvloop")


def described() -> dict[str, Any]:
    return {
        "cuepost": cuepost.__version__,
        "Python": platform.python_version(),
        "SQLite": sqlite3.sqlite_version,
        "PostgreSQL": _postgres_version(),
        "Redis": redis_version(),
        "OpenSSL": ssl.OPENSSL_VERSION,
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "processor": _processor(),
        "cores": len(cores()),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        **{package: version(package) for package in PACKAGES},
        **peer_versions(),
    }


def load() -> float:
    """The load average of the last minute."""
    return round(os.getloadavg()[0], 2)


def _postgres_version() -> str:
    binaries = next(iter(server_binaries()), None)
    if binaries is None:
        return "none"
    reported = subprocess.run(
        [binaries / "postgres", "--version"], capture_output=True, text=True, check=True, timeout=30
    )
    return reported.stdout.split()[-1]


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.lower().startswith(("model name", "cpu part")):
            return line.partition(":")[2].strip()
    return "unknown"
