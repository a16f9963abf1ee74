"""The engine runs on the same harnesses as the use cases: both stores, a clock that jumps."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cuepost.adapters.storage.records.claims import Claims
from cuepost.ports.dispatch import Claim, Claimed
from tests.application.conftest import (
    harness,
    migrated_file,
    postgres_harness,
    postgres_store,
    sqlite_harness,
)
from tests.support.engine_harness import RunScenarios, ScenarioRunner, migrate_database
from tests.support.engine_harness import migrated_file as make_migrated_file
from tests.support.postgres import fresh_database_sync

__all__ = ["harness", "migrated_file", "postgres_harness", "postgres_store", "sqlite_harness"]


@pytest.fixture(scope="session")
def engine_store_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_migrated_file(tmp_path_factory.mktemp("stage"))


@pytest.fixture(scope="session")
def engine_database(postgres_url: str) -> Iterator[str]:
    with fresh_database_sync(postgres_url) as url:
        migrate_database(url)
        yield url


@pytest.fixture
def run_embedded(engine_store_file: Path, tmp_path: Path) -> RunScenarios:
    return ScenarioRunner(engine_store_file, tmp_path).run


@pytest.fixture
def run_postgres(engine_store_file: Path, engine_database: str, tmp_path: Path) -> RunScenarios:
    return ScenarioRunner(engine_store_file, tmp_path, engine_database).run


@pytest.fixture(params=["sqlite", "postgresql"])
def run_scenarios(request: pytest.FixtureRequest) -> RunScenarios:
    """On both stores."""
    name = {"sqlite": "run_embedded", "postgresql": "run_postgres"}[request.param]
    found: RunScenarios = request.getfixturevalue(name)
    return found


@pytest.fixture
def claims(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many assignments each claim brought."""
    counts: list[int] = []
    original = Claims.claim

    async def counted(self: Claims, wanted: Claim, now: object) -> Claimed:
        claimed = await original(self, wanted, now)  # type: ignore[arg-type]  # as it came
        counts.append(len(claimed.assignments))
        return claimed

    monkeypatch.setattr(Claims, "claim", counted)
    return counts
