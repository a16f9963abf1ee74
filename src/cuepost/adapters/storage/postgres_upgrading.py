"""Brings a PostgreSQL database to the newest schema. Loaded only where that is needed."""

import logging

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from cuepost.adapters.storage import upgrading
from cuepost.adapters.storage.postgres_connecting import connect
from cuepost.adapters.storage.postgres_session import translated

log = logging.getLogger("cuepost.store")


async def upgrade_postgres(url: str) -> bool:
    """True when something had to be done. It may take as long as it takes."""
    engine = create_async_engine(
        "postgresql+asyncpg://",
        async_creator=lambda: connect(url),
        hide_parameters=True,
        poolclass=sa.NullPool,
    )
    with translated():
        try:
            async with engine.begin() as connection:
                changed = await connection.run_sync(upgrading.upgrade)
            while told := await _step(engine):
                log.info("event=history_moved %s", told)
                changed = True
        except sa.exc.DBAPIError as error:
            # SQLAlchemy wraps its own wrapper of what the driver said.
            raise getattr(error.orig, "__cause__", None) or error from error
    return changed


async def _step(engine: AsyncEngine) -> str | None:
    async with engine.begin() as connection:
        return await connection.run_sync(upgrading.move_some)
