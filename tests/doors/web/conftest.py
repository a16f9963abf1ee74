"""Pages are tried on both stores; the fixtures are those of the use cases."""

import pytest

from tests.application.conftest import (
    migrated_file,
    postgres_store,
    postgres_world,
    sqlite_world,
    world,
)
from tests.application.world import World
from tests.doors.web.guest import Guest, opened

__all__ = ["migrated_file", "postgres_store", "postgres_world", "sqlite_world", "world"]


@pytest.fixture
def stranger(world: World) -> Guest:
    """Not signed in."""
    return opened(world)


@pytest.fixture
async def guest(stranger: Guest) -> Guest:
    """Signed in to the world's account."""
    return await stranger.sign_in()
