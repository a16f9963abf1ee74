"""Every operator command runs on both stores."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interfaces.cli.terminal import Terminal
from tests.support.postgres import database_name, fresh_database_sync


@pytest.fixture
def empty_sqlite(tmp_path: Path) -> Terminal:
    return Terminal({"CUEPOST_DATA_DIR": str(tmp_path / "data")})


@pytest.fixture
def empty_postgres(postgres_url: str, tmp_path: Path) -> Iterator[Terminal]:
    with fresh_database_sync(postgres_url) as url:
        yield Terminal({"CUEPOST_DATA_DIR": str(tmp_path / "data"), "CUEPOST_DATABASE_URL": url})


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request: pytest.FixtureRequest) -> Terminal:
    """On a store without a schema."""
    kind = {"sqlite": "empty_sqlite", "postgresql": "empty_postgres"}[request.param]
    found = request.getfixturevalue(kind)
    assert isinstance(found, Terminal)
    return found


@pytest.fixture(scope="session")
def migrated_database(postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A database to copy: making the schema again takes ten times as long."""
    folder = str(tmp_path_factory.mktemp("migrated"))
    with fresh_database_sync(postgres_url) as url:
        environ = {"CUEPOST_DATA_DIR": folder, "CUEPOST_DATABASE_URL": url}
        Terminal(environ).words("migrate")
        yield url


@pytest.fixture
def ready_postgres(postgres_url: str, migrated_database: str, tmp_path: Path) -> Iterator[Terminal]:
    template = database_name(migrated_database)
    with fresh_database_sync(postgres_url, template=template) as url:
        yield Terminal({"CUEPOST_DATA_DIR": str(tmp_path / "data"), "CUEPOST_DATABASE_URL": url})


@pytest.fixture(params=["sqlite", "postgresql"])
def terminal(request: pytest.FixtureRequest) -> Terminal:
    """On a store with a schema and nothing in it."""
    kind = {"sqlite": "empty_sqlite", "postgresql": "ready_postgres"}[request.param]
    found = request.getfixturevalue(kind)
    assert isinstance(found, Terminal)
    return found
