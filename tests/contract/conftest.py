"""Real deliveries of the engine, for whoever receives them."""

from tests.engine.conftest import engine_store_file
from tests.engine.test_signatures import delivered

__all__ = ["delivered", "engine_store_file"]
