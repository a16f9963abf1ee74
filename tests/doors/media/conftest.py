"""The REST and the media door in one application, on both stores."""

from collections.abc import AsyncIterator

import pytest

from tests.application.conftest import (
    migrated_file,
    postgres_store,
    postgres_world,
    sqlite_world,
    world,
)
from tests.application.world import World
from tests.doors.rest.client import Api, opened

__all__ = ["migrated_file", "postgres_store", "postgres_world", "sqlite_world", "world"]


@pytest.fixture
async def api(world: World) -> AsyncIterator[Api]:
    found = await opened(world)
    async with found.client:
        yield found


@pytest.fixture
async def sqlite_api(sqlite_world: World) -> AsyncIterator[Api]:
    found = await opened(sqlite_world)
    async with found.client:
        yield found
