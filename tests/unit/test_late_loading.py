"""A start does not load what it may never need."""

import subprocess
import sys

LATE = (
    "alembic",
    "argon2",
    "asyncpg",
    "cryptography",
    "cuepost.adapters.openid",
    "cuepost.adapters.storage.postgres",
    "cuepost.interfaces.cli.demo",
    "cuepost.interfaces.cli.listen",
    "cuepost.interfaces.cli.receiver",
    "cuepost.interfaces.rest.openapi",
    "cuepost_receiver",
    "httpx2",
    "jinja2",
    "jwt",
    "mcp",
    "obstore",
    "opentelemetry",
    "pydantic",
    "sqlalchemy",
)
PROGRAM = f"import sys, cuepost.bootstrap.runtime; print([n for n in {LATE} if n in sys.modules])"

DRIVER_AFTERWARDS = """
from cuepost.adapters.quick_ids import id_from
import asyncpg
from asyncpg.pgproto import pgproto
assert asyncpg.connect and pgproto.UUID is type(id_from(bytes(16)))
"""


def test_serving_an_embedded_store_loads_neither_other_stores_nor_protocols() -> None:
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=True
    )
    assert found.stdout == "[]\n"


def test_the_postgres_driver_is_whole_when_it_is_loaded_later() -> None:
    subprocess.run([sys.executable, "-c", DRIVER_AFTERWARDS], timeout=60, check=True)
