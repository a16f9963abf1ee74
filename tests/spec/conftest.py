"""The rules are shown on the same worlds as the use cases, through the REST door."""

from collections.abc import AsyncIterator

import httpx2
import pytest

from cuepost.doors.rest.app import create_app
from cuepost.doors.rest.open_pages import HealthChecks
from tests.application.conftest import (
    migrated_file,
    postgres_store,
    postgres_world,
    sqlite_world,
    world,
)
from tests.application.world import BASE_URL, World

__all__ = ["migrated_file", "postgres_store", "postgres_world", "sqlite_world", "world"]


@pytest.fixture
async def api(world: World) -> AsyncIterator[httpx2.AsyncClient]:
    health = HealthChecks(world.store.check)
    app = create_app(world.service, base_url=BASE_URL, health=health)
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url=BASE_URL) as client:
        yield client
