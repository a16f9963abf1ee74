"""A real PgBouncer in front of a PostgreSQL server for tests."""

import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from tests.support.operator_tools import Program, program
from tests.support.postgres_binaries import ServerUser
from tests.support.service_process import free_port

PATIENCE_SECONDS = 30.0
CONFIGURATION = """
[databases]
* = host={host} port={server_port}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = plain
auth_file = {folder}/users.txt
logfile = {folder}/log
max_client_conn = 1000
default_pool_size = 60
"""


def version(pgbouncer: Program) -> tuple[int, int]:
    found = re.search(r"(\d+)\.(\d+)", pgbouncer.run("--version").stdout)
    assert found is not None
    return int(found[1]), int(found[2])


@contextmanager
def pgbouncer(url: str, pool_mode: str, more: Mapping[str, str] | None = None) -> Iterator[str]:
    """The URL of the same database through a pooler of its own."""
    binary = program("pgbouncer")
    server, port, user = urlsplit(url), free_port(), ServerUser.for_this_process()
    folder = Path(tempfile.mkdtemp(prefix="cuepost-pgbouncer-"))
    text = CONFIGURATION.format(
        host=server.hostname, server_port=server.port, port=port, folder=folder
    )
    settings = {"pool_mode": pool_mode, **(more or {})}
    text += "".join(f"{name} = {value}\n" for name, value in settings.items())
    configuration, users = folder / "pgbouncer.ini", folder / "users.txt"
    configuration.write_text(text)
    users.write_text(f'"{server.username}" "{server.password}"\n')
    for path in (folder, configuration, users):
        user.give(path)
    # It refuses to run as root, and steps down by itself.
    options = ["-q", *(["-u", "nobody"] if user.uid is not None else [])]
    process = subprocess.Popen([binary.path, *options, configuration], env=binary.environ)
    try:
        _wait_until_listening(process, port, folder / "log")
        own = f"{server.username}:{server.password}@127.0.0.1:{port}"
        yield urlunsplit(server._replace(netloc=own))
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)
        shutil.rmtree(folder)


def _wait_until_listening(process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        os.sched_yield()
    raise AssertionError(log.read_text() if log.exists() else "PgBouncer did not start")
