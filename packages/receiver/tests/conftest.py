"""The kit's tests run on the loop, the PostgreSQL and the hypothesis profile of the service's."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cuepost_receiver import SqliteStore
from packages.receiver.tests.media_server import Site, running
from tests.conftest import anyio_backend, postgres_database, postgres_url

__all__ = ["anyio_backend", "postgres_database", "postgres_url"]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "inbox.sqlite3")
    yield store
    store.close()


@pytest.fixture
def service() -> Iterator[Site]:
    with running() as site:
        yield site


@pytest.fixture
def media() -> Iterator[Site]:
    with running() as site:
        yield site
