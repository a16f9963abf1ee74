"""The two stores that every scenario runs on, each in its recommended set-up."""

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import asyncpg

from benchmarks.figures import Figure, NotRun, attempted
from benchmarks.processes import cpu_seconds, unshared_megabytes
from benchmarks.sizes import Sizes
from tests.support.postgres import PostgresServer, fresh_database_sync


@dataclass(frozen=True, slots=True)
class StoreChoice:
    """`key` is for keys of figures, `name` for readers; without a server it is embedded."""

    key: str
    name: str
    halves: tuple[str, ...]
    server: PostgresServer | None = None

    @contextmanager
    def fresh(self) -> Iterator[Mapping[str, str]]:
        """The settings of an empty store."""
        if self.server is None:
            yield {}
        else:
            with fresh_database_sync(self.server.url) as url:
                yield {"DATABASE_URL": url}

    def settle(self, settings: Mapping[str, str]) -> None:
        """Makes the prepared data as if it had been there for long.

        It is on the disk, and PostgreSQL has vacuumed and analysed it.
        """
        if self.server is not None:
            asyncio.run(_run(settings["DATABASE_URL"], "VACUUM (ANALYZE)", "CHECKPOINT"))
        os.sync()

    @property
    def sending(self) -> str:
        """The process that sends deliveries."""
        return self.halves[-1]

    @property
    def pids(self) -> list[int]:
        return [self.server.pid] if self.server and self.server.pid else []

    @property
    def cpu(self) -> float:
        """SQLite runs inside the service, so its CPU counts there."""
        return cpu_seconds(self.pids)

    @property
    def memory(self) -> float:
        return unshared_megabytes(self.pids)


LOG_FILES = 24
# Scenarios fill databases of many gigabytes; the server's default is for the smallest machines.
CACHE = "1GB"
SQLITE = StoreChoice("sqlite", "SQLite", ("serve",))
POSTGRES = "postgres"


@contextmanager
def postgres() -> Iterator[StoreChoice]:
    """A private server that syncs to disk as in production, and is warmed up."""
    with PostgresServer(durable=True, cache=CACHE) as server:
        asyncio.run(_settle_in(server.url))
        yield StoreChoice(POSTGRES, "PostgreSQL", ("api", "worker"), server)


async def _settle_in(url: str) -> None:
    """A new server creates each WAL file when it needs it, which takes a fifth of a second.

    A server that has been running for a while reuses old files.
    """
    another = ("SELECT pg_logical_emit_message(true, 'cuepost', '')", "SELECT pg_switch_wal()")
    await _run(
        url,
        "ALTER SYSTEM SET min_wal_size = '1GB'",
        "SELECT pg_reload_conf()",
        *(LOG_FILES * another),
        "CHECKPOINT",
    )


async def _run(url: str, *statements: str) -> None:
    server = await asyncpg.connect(url)
    try:
        for statement in statements:
            await server.execute(statement)
    finally:
        await server.close()


def stores(sizes: Sizes) -> Iterator[StoreChoice]:
    if sizes.store in (None, SQLITE.key):
        yield SQLITE
    if sizes.store in (None, POSTGRES):
        with postgres() as choice:
            yield choice


def on_each_store(
    scenario: str, measured: Callable[[StoreChoice, Sizes], Iterator[Figure | NotRun]], sizes: Sizes
) -> Iterator[Figure | NotRun]:
    for store in stores(sizes):
        figures = measured(store, sizes)
        yield from attempted(f"{scenario}.{store.key}", f"{scenario} on {store.name}", figures)
