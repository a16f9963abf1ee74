"""A start does not load what it may never need."""

import subprocess
import sys

LATE = ("alembic", "mcp", "obstore", "opentelemetry", "sqlalchemy.ext.asyncio", "sqlalchemy.orm")
PROGRAM = f"import sys, cuepost.bootstrap.house; print([n for n in {LATE} if n in sys.modules])"


def test_serving_an_embedded_store_loads_neither_other_stores_nor_protocols() -> None:
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=True
    )
    assert found.stdout == "[]\n"
