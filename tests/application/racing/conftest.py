"""Every race runs on both stores."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.application.racing.rivals import Rivals, rivals_on_postgres, rivals_on_sqlite
from tests.application.world import World


@pytest.fixture
async def sqlite_rivals(migrated_file: Path, tmp_path: Path) -> AsyncIterator[Rivals]:
    async with rivals_on_sqlite(migrated_file, tmp_path / "cuepost.db") as rivals:
        yield rivals


@pytest.fixture
async def postgres_rivals(postgres_world: World) -> AsyncIterator[Rivals]:
    async with rivals_on_postgres(postgres_world) as rivals:
        yield rivals


@pytest.fixture(params=["sqlite", "postgresql"])
def rivals(request: pytest.FixtureRequest) -> Rivals:
    kind = {"sqlite": "sqlite_rivals", "postgresql": "postgres_rivals"}[request.param]
    found = request.getfixturevalue(kind)
    assert isinstance(found, Rivals)
    return found
