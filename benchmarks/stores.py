"""The two stores that every scenario is run on, each as it is meant to be used."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks.figures import Figure, NotRun, attempted
from benchmarks.processes import cpu_seconds, unshared_megabytes
from benchmarks.sizes import Sizes
from tests.support.postgres import PostgresServer, fresh_database_sync


@dataclass(frozen=True, slots=True)
class StoreChoice:
    """`key` for the figures' keys, `name` for people; without a server it is the embedded one."""

    key: str
    name: str
    halves: tuple[str, ...]
    server: PostgresServer | None = None

    @contextmanager
    def fresh(self) -> Iterator[Mapping[str, str]]:
        """The settings of a store with nothing in it."""
        if self.server is None:
            yield {}
        else:
            with fresh_database_sync(self.server.url) as url:
                yield {"DATABASE_URL": url}

    @property
    def sending(self) -> str:
        """The process that sends what waits."""
        return self.halves[-1]

    @property
    def pids(self) -> list[int]:
        return [self.server.pid] if self.server and self.server.pid else []

    @property
    def cpu(self) -> float:
        """SQLite works inside the service, where its time is counted."""
        return cpu_seconds(self.pids)

    @property
    def memory(self) -> float:
        return unshared_megabytes(self.pids)


SQLITE = StoreChoice("sqlite", "SQLite", ("serve",))


@contextmanager
def postgres() -> Iterator[StoreChoice]:
    """A server of our own that syncs to disk as in production."""
    with PostgresServer(durable=True) as server:
        yield StoreChoice("postgres", "PostgreSQL", ("api", "worker"), server)


def stores() -> Iterator[StoreChoice]:
    yield SQLITE
    with postgres() as choice:
        yield choice


def on_each_store(
    scenario: str, measured: Callable[[StoreChoice, Sizes], Iterator[Figure]], sizes: Sizes
) -> Iterator[Figure | NotRun]:
    for store in stores():
        figures = measured(store, sizes)
        yield from attempted(f"{scenario}.{store.key}", f"{scenario} on {store.name}", figures)
