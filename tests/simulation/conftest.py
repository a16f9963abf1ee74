"""Simulations run_scenarios on the engine of the engine's tests."""

from tests.engine.conftest import engine_database, engine_store_file, run_embedded, run_postgres

__all__ = ["engine_database", "engine_store_file", "run_embedded", "run_postgres"]
