"""For every test: the event loop, a real PostgreSQL, and an order that keeps all cores busy."""

import gc
import logging
import os
import signal
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from hypothesis import find, settings
from hypothesis import strategies as st
from hypothesis.database import DirectoryBasedExampleDatabase

from tests.support.missing import missing_component
from tests.support.postgres import PostgresServer, fresh_database, plain_url
from tests.support.postgres_binaries import server_binaries

settings.register_profile(
    "developer", deadline=None, database=DirectoryBasedExampleDatabase(".cache/hypothesis")
)
if "CI" not in os.environ:
    settings.load_profile("developer")


# A shell that starts the tests in the background has them ignore it, and every process of theirs.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Whole processes, browsers and thousands of seeds: each takes seconds, the others milliseconds.
_LONG = (
    "tests/browser/",
    "tests/deploy/",
    "tests/docs/",
    "tests/e2e/",
    "tests/faults/",
    "tests/migrations/test_old_stores",
    "tests/model/",
    "tests/simulation/",
    "test_schemathesis",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Each process begins with its share of the long tests, so that none is alone with them."""
    shares = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    long = [item for item in items if any(part in item.nodeid for part in _LONG)]
    short = [item for item in items if not any(part in item.nodeid for part in _LONG)]
    ordered: list[pytest.Item] = []
    for share in range(shares):
        ordered += long[share::shares]
        upto = len(items) * (share + 1) // shares - len(ordered)
        ordered += short[:upto]
        del short[:upto]
    items[:] = ordered


def pytest_xdist_setupnodes() -> None:
    """Hypothesis works out once what a text may hold, which takes seconds, and keeps it on disk.

    Before the processes start that would all do the same.
    """
    find(st.text(), lambda _: True, settings=settings(database=None))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What is collected stays to the end; each search for garbage in it takes half a second."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(autouse=True)
def _log_level() -> Iterator[None]:
    """A service that is started within a test sets it for the whole process."""
    logger = logging.getLogger("cuepost")
    level = logger.level
    yield
    if logger.level != level:
        logger.setLevel(level)


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
