"""The model's service stands on the store of the engine's engine."""

from tests.engine.conftest import engine_store_file

__all__ = ["engine_store_file"]
