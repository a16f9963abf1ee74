"""The rules are shown on the same harnesses as the use cases, through the REST interface."""

from collections.abc import AsyncIterator

import httpx2
import pytest

from cuepost.interfaces.rest.app import create_app
from cuepost.interfaces.rest.open_pages import HealthChecks
from tests.application.conftest import (
    harness,
    migrated_file,
    postgres_harness,
    postgres_store,
    sqlite_harness,
)
from tests.application.harness import BASE_URL, Harness

__all__ = ["harness", "migrated_file", "postgres_harness", "postgres_store", "sqlite_harness"]


@pytest.fixture
async def api(harness: Harness) -> AsyncIterator[httpx2.AsyncClient]:
    health = HealthChecks(harness.store.check)
    app = create_app(harness.service, base_url=BASE_URL, health=health)
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url=BASE_URL) as client:
        yield client
