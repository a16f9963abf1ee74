"""The kit's tests run on the loop, the PostgreSQL and the hypothesis profile of the service's."""

from tests.conftest import anyio_backend, postgres_database, postgres_url

__all__ = ["anyio_backend", "postgres_database", "postgres_url"]
