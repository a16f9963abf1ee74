"""The engine runs on the same worlds as the use cases: both stores, a clock that jumps."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cuepost.adapters.storage.records.claims import Claims
from cuepost.ports.dispatch import Claim, Claimed
from tests.application.conftest import (
    migrated_file,
    postgres_store,
    postgres_world,
    sqlite_world,
    world,
)
from tests.support.postgres import fresh_database_sync
from tests.support.stage import Play, Theatre, migrate_database
from tests.support.stage import migrated_file as make_migrated_file

__all__ = ["migrated_file", "postgres_store", "postgres_world", "sqlite_world", "world"]


@pytest.fixture(scope="session")
def stage_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_migrated_file(tmp_path_factory.mktemp("stage"))


@pytest.fixture(scope="session")
def stage_database(postgres_url: str) -> Iterator[str]:
    with fresh_database_sync(postgres_url) as url:
        migrate_database(url)
        yield url


@pytest.fixture
def play_embedded(stage_file: Path, tmp_path: Path) -> Play:
    return Theatre(stage_file, tmp_path).play


@pytest.fixture
def play_postgres(stage_file: Path, stage_database: str, tmp_path: Path) -> Play:
    return Theatre(stage_file, tmp_path, stage_database).play


@pytest.fixture(params=["sqlite", "postgresql"])
def play(request: pytest.FixtureRequest) -> Play:
    """On both stores."""
    name = {"sqlite": "play_embedded", "postgresql": "play_postgres"}[request.param]
    found: Play = request.getfixturevalue(name)
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
