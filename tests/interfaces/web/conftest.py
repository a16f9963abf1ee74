"""Pages are tried on both stores; the fixtures are those of the use cases."""

import pytest

from tests.application.conftest import (
    harness,
    migrated_file,
    postgres_harness,
    postgres_store,
    sqlite_harness,
)
from tests.application.harness import Harness
from tests.interfaces.web.page_client import PageClient, opened

__all__ = ["harness", "migrated_file", "postgres_harness", "postgres_store", "sqlite_harness"]


@pytest.fixture
def stranger(harness: Harness) -> PageClient:
    """Not signed in."""
    return opened(harness)


@pytest.fixture
async def page_client(stranger: PageClient) -> PageClient:
    """Signed in to the harness's account."""
    return await stranger.sign_in()
