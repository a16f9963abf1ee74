"""Every race runs on both stores."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.application.harness import Harness
from tests.application.racing.instances import Instances, instances_on_postgres, instances_on_sqlite


@pytest.fixture
async def sqlite_instances(migrated_file: Path, tmp_path: Path) -> AsyncIterator[Instances]:
    async with instances_on_sqlite(migrated_file, tmp_path / "cuepost.db") as instances:
        yield instances


@pytest.fixture
async def postgres_instances(postgres_harness: Harness) -> AsyncIterator[Instances]:
    async with instances_on_postgres(postgres_harness) as instances:
        yield instances


@pytest.fixture(params=["sqlite", "postgresql"])
def instances(request: pytest.FixtureRequest) -> Instances:
    kind = {"sqlite": "sqlite_instances", "postgresql": "postgres_instances"}[request.param]
    found = request.getfixturevalue(kind)
    assert isinstance(found, Instances)
    return found
