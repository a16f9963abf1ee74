"""Fixtures for tests with failing processes: empty stores of both kinds."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.postgres import fresh_database_sync


@pytest.fixture
def kills() -> int:
    """How often something is killed; a long run asks for more."""
    return int(os.environ.get("CUEPOST_TEST_KILLS", "3"))


@pytest.fixture
def sqlite_settings(tmp_path: Path) -> dict[str, str]:
    return {"DATA_DIR": str(tmp_path / "data")}


@pytest.fixture
def postgres_settings(tmp_path: Path, postgres_url: str) -> Iterator[dict[str, str]]:
    with fresh_database_sync(postgres_url) as url:
        yield {"DATA_DIR": str(tmp_path / "data"), "DATABASE_URL": url}
