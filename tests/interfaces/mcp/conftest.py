"""Each test begins with an empty store and an open interface."""

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
from tests.interfaces.mcp.agent import McpService, opened

__all__ = ["harness", "migrated_file", "postgres_harness", "postgres_store", "sqlite_harness"]


@pytest.fixture
async def mcp_service(harness: Harness) -> AsyncIterator[McpService]:
    async with opened(harness) as mcp_service:
        yield mcp_service


@pytest.fixture
async def sqlite_mcp_service(sqlite_harness: Harness) -> AsyncIterator[McpService]:
    """For what does not depend on the store."""
    async with opened(sqlite_harness) as mcp_service:
        yield mcp_service
