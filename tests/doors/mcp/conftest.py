"""Each test begins with an empty store and an open door."""

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
from tests.doors.mcp.agent import Desk, opened

__all__ = ["migrated_file", "postgres_store", "postgres_world", "sqlite_world", "world"]


@pytest.fixture
async def desk(world: World) -> AsyncIterator[Desk]:
    async with opened(world) as desk:
        yield desk


@pytest.fixture
async def sqlite_desk(sqlite_world: World) -> AsyncIterator[Desk]:
    """For what does not depend on the store."""
    async with opened(sqlite_world) as desk:
        yield desk
