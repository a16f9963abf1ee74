"""A whole service on an embedded store, with every interface open."""

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from cuepost.adapters.storage.sqlite import SqliteStore
from cuepost.testing import VirtualClock
from tests.fuzz.target import FuzzTarget, opened


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fuzz") / "cuepost.db"

    async def make() -> None:
        store = SqliteStore(path, VirtualClock())
        await store.open()
        await store.close()

    asyncio.run(make())
    return path


@pytest.fixture
def target(empty_store: Path, tmp_path: Path) -> Iterator[FuzzTarget]:
    shutil.copyfile(empty_store, tmp_path / "cuepost.db")
    with opened(tmp_path / "cuepost.db") as target:
        yield target
