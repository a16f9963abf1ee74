"""Every call runs on both stores, each time on an empty one."""

from collections.abc import AsyncIterator

import pytest

from tests.application.conftest import (
    harness,
    migrated_file,
    postgres_harness,
    postgres_store,
    sqlite_harness,
)
from tests.application.harness import Harness
from tests.interfaces.rest.client import Api, opened

__all__ = ["harness", "migrated_file", "postgres_harness", "postgres_store", "sqlite_harness"]


@pytest.fixture
async def api(harness: Harness) -> AsyncIterator[Api]:
    found = await opened(harness)
    async with found.client:
        yield found


@pytest.fixture
async def sqlite_api(sqlite_harness: Harness) -> AsyncIterator[Api]:
    """For what never reaches the store."""
    found = await opened(sqlite_harness)
    async with found.client:
        yield found
