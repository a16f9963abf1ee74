"""Fixtures for every test: the event loop and a real PostgreSQL."""

import os
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.database import DirectoryBasedExampleDatabase

from tests.support.missing import missing_component
from tests.support.postgres import PostgresServer, fresh_database, plain_url
from tests.support.postgres_binaries import server_binaries

settings.register_profile(
    "developer", deadline=None, database=DirectoryBasedExampleDatabase(".cache/hypothesis")
)
if "CI" not in os.environ:
    settings.load_profile("developer")


@pytest.fixture(scope="session")
def anyio_backend() -> tuple[str, dict[str, Any]]:
    """Plain `async def` tests run on the loop that the product runs on."""
    return "asyncio", {"use_uvloop": True}


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """An administrator's URL of a PostgreSQL server; make databases of your own beside it."""
    if given := os.environ.get("CUEPOST_TEST_DATABASE_URL"):
        yield plain_url(given)
        return
    if next(server_binaries(), None) is None:
        missing_component("no PostgreSQL: run `make install`, or set CUEPOST_TEST_DATABASE_URL")
    with PostgresServer() as server:
        yield server.url


@pytest.fixture
async def postgres_database(postgres_url: str) -> AsyncIterator[str]:
    """The URL of an empty database that lives as long as the test."""
    async with fresh_database(postgres_url) as url:
        yield url
