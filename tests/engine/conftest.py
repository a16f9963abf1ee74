"""The engine runs on the same worlds as the use cases: both stores, a clock that jumps."""

from tests.application.conftest import (
    migrated_file,
    postgres_store,
    postgres_world,
    sqlite_world,
    world,
)

__all__ = ["migrated_file", "postgres_store", "postgres_world", "sqlite_world", "world"]
