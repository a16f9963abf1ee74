"""A real PostgreSQL for tests, started by the tests themselves.

Order: the server named by `CUEPOST_TEST_DATABASE_URL`, else one of our own from the first
binaries found (see `postgres_binaries`). Every test process has its own server.
"""

import asyncio
import os
import re
import secrets
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Literal, Self, TypeVar
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from tests.support.postgres_binaries import ServerUser, readable_binaries, server_binaries

Result = TypeVar("Result")
StopMode = Literal["smart", "fast", "immediate", "kill"]

_STOP_SIGNALS: dict[StopMode, signal.Signals] = {
    "smart": signal.SIGTERM,
    "fast": signal.SIGINT,
    "immediate": signal.SIGQUIT,
    "kill": signal.SIGKILL,
}
# A killed server still keeps every commit; only a power failure would not be survived.
_WITHOUT_DISK_SYNC = {"fsync": "off", "full_page_writes": "off"}
_PORTS_TRIED = 4
_START_LIMIT_SECONDS = 30.0
_STOP_LIMIT_SECONDS = 30.0


class PostgresDidNotStart(Exception):
    """The PostgreSQL server for tests did not come up."""


class PostgresServer:
    """One private server on a loopback port of its own, which it keeps across restarts.

    It dies with the thread that started it, so start it from one that lives long enough.
    `durable` makes it sync to disk as in production, for measurements; `cache` is what it keeps in
    memory.
    """

    def __init__(
        self, binaries: Path | None = None, *, durable: bool = False, cache: str = "64MB"
    ) -> None:
        found = binaries or next(iter(server_binaries()), None)
        if found is None:
            raise PostgresDidNotStart("no PostgreSQL server binaries were found")
        self._binaries = found
        self._user = ServerUser.for_this_process()
        self.folder = Path(tempfile.mkdtemp(prefix="cuepost-postgres-"))
        self._user.give(self.folder)
        self._settings = {} if durable else _WITHOUT_DISK_SYNC
        self._cache = cache
        self._password = secrets.token_hex(16)
        self._port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._all_gone: int | None = None

    @property
    def url(self) -> str:
        return f"postgresql://postgres:{self._password}@127.0.0.1:{self._port}/postgres"

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> str:
        path = self.folder / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    def start(self) -> None:
        if self.is_running:
            return
        if not self._data.exists():
            self._create_cluster()
        # The server and all its children hold the writing end; it closes with the last of them.
        self._all_gone, held = os.pipe()
        try:
            self._process = self._spawn(held)
        finally:
            os.close(held)
        self._wait_until_ready(self._process)

    def stop(self, mode: StopMode = "fast") -> None:
        if self._process is None:
            return
        if self.is_running:
            self._process.send_signal(_STOP_SIGNALS[mode])
        self._process.wait(_STOP_LIMIT_SECONDS)
        self._process = None
        self._wait_until_all_gone()

    def restart(self, mode: StopMode = "fast") -> None:
        self.stop(mode)
        self.start()

    def close(self) -> None:
        """Stop the server and remove every file of it."""
        self.stop("immediate")
        shutil.rmtree(self.folder)

    def __enter__(self) -> Self:
        try:
            self._start_on_a_free_port()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start_on_a_free_port(self) -> None:
        """A port that was free a moment ago may be someone else's by now."""
        for _ in range(_PORTS_TRIED - 1):
            try:
                return self.start()
            except PostgresDidNotStart as error:
                if "Address already in use" not in str(error):
                    raise
                self._port = _free_port()
        return self.start()

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    @property
    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        return kept | {"LC_ALL": "C", "TZ": "UTC", "HOME": str(self.folder)}

    def _spawn(self, held: int) -> subprocess.Popen[bytes]:
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                self._user.command_dying_with_parent(self._server_command()),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._environment,
                start_new_session=True,
                pass_fds=(held,),
                **self._user.popen_arguments(),
            )

    def _create_cluster(self) -> None:
        self._binaries = readable_binaries(self._binaries, self._user, self.folder)
        password_file = self.folder / "password"
        password_file.write_text(self._password)
        self._user.give(password_file)
        self._run_tool(self._cluster_command(password_file))

    def _run_tool(self, command: list[str]) -> None:
        """One of the server's own programs, as the user that the server runs as."""
        ran = subprocess.run(
            self._user.command(command),
            cwd=self.folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=_START_LIMIT_SECONDS,
            check=False,
            **self._user.popen_arguments(),
        )
        if ran.returncode != 0:
            raise PostgresDidNotStart(ran.stdout + ran.stderr)

    def _cluster_command(self, password_file: Path) -> list[str]:
        command = [str(self._binaries / "initdb"), "--pgdata", str(self._data), "--no-sync"]
        command += ["--username=postgres", "--auth=password", f"--pwfile={password_file}"]
        return [*command, "--encoding=UTF8", "--locale=C"]

    def _server_command(self) -> list[str]:
        settings = self._settings | {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "port": str(self._port),
            "max_connections": "100",
            "shared_buffers": self._cache,
        }
        command = [str(self._binaries / "postgres"), "-D", str(self._data)]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        return command

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + _START_LIMIT_SECONDS
        while not self._says_ready(process.pid):
            if process.poll() is not None or time.monotonic() > deadline:
                self.stop("immediate")
                raise PostgresDidNotStart(self.log)
            time.sleep(0.01)

    def _wait_until_all_gone(self) -> None:
        # After a kill the children go by themselves; until then no new server could start.
        assert self._all_gone is not None
        gone, _, _ = select.select([self._all_gone], [], [], _STOP_LIMIT_SECONDS)
        os.close(self._all_gone)
        self._all_gone = None
        if not gone:
            raise TimeoutError("processes of the PostgreSQL server outlived it")

    def _says_ready(self, pid: int) -> bool:
        # A killed server leaves its file behind, hence the look at the process id.
        try:
            lines = (self._data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        return len(lines) >= 8 and lines[0] == str(pid) and lines[7].strip() == "ready"


async def create_database(admin_url: str, *, template: str = "template0") -> str:
    """Make an empty database, or a copy of `template`; the answer is its URL."""
    name = f"cuepost_{uuid.uuid4().hex}"
    await _execute(admin_url, f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
    return _with_database(admin_url, name)


async def drop_database(admin_url: str, url: str) -> None:
    """Drop the database that `url` names, together with whatever is still connected to it."""
    await _execute(admin_url, f'DROP DATABASE IF EXISTS "{database_name(url)}" WITH (FORCE)')


@asynccontextmanager
async def fresh_database(admin_url: str, *, template: str = "template0") -> AsyncIterator[str]:
    url = await create_database(admin_url, template=template)
    try:
        yield url
    finally:
        await drop_database(admin_url, url)


@contextmanager
def fresh_database_sync(admin_url: str, *, template: str = "template0") -> Iterator[str]:
    """`fresh_database` for callers that are not coroutines."""
    url = _run_apart(create_database(admin_url, template=template))
    try:
        yield url
    finally:
        _run_apart(drop_database(admin_url, url))


def database_name(url: str) -> str:
    return urlsplit(url).path.removeprefix("/")


def plain_url(url: str) -> str:
    """The URL without the name of a driver, which asyncpg itself does not understand."""
    return re.sub(r"^postgres(ql)?(\+\w+)?:", "postgresql:", url)


async def _execute(admin_url: str, statement: str) -> None:
    connection = await asyncpg.connect(admin_url, timeout=30)
    try:
        await connection.execute(statement, timeout=30)
    finally:
        await connection.close()


def _run_apart(work: Coroutine[object, object, Result]) -> Result:
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def _with_database(url: str, name: str) -> str:
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
