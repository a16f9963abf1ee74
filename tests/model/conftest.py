"""The model's house stands on the store of the engine's stage."""

from tests.engine.conftest import stage_file

__all__ = ["stage_file"]
