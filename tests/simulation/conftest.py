"""Simulations play on the stage of the engine's tests."""

from tests.engine.conftest import play_embedded, play_postgres, stage_database, stage_file

__all__ = ["play_embedded", "play_postgres", "stage_database", "stage_file"]
