"""Real deliveries of the engine, for the receivers of these tests."""

from tests.engine.conftest import engine_store_file
from tests.engine.test_signatures import delivered

__all__ = ["delivered", "engine_store_file"]
