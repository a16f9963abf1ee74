"""A standby of a PostgreSQL server for tests: it follows by streaming, and can be promoted."""

import asyncio
from pathlib import Path

import asyncpg

from tests.support.postgres import PostgresServer
from tests.support.postgres_binaries import readable_binaries


class PostgresStandby(PostgresServer):
    """Its users and databases are those of the server that it follows."""

    def __init__(self, primary: PostgresServer) -> None:
        super().__init__(durable=True)
        self._primary = primary
        self._password = primary._password

    def promote(self) -> None:
        async def ask() -> None:
            connection = await asyncpg.connect(self.url)
            try:
                assert await connection.fetchval("SELECT pg_promote()")
            finally:
                await connection.close()

        asyncio.run(ask())

    def _create_cluster(self) -> None:
        self._binaries = readable_binaries(self._binaries, self._user, self.folder)
        self._run_tool(_copying(self._binaries, self._primary.url, self._data))


def _copying(binaries: Path, url: str, data: Path) -> list[str]:
    program = [str(binaries / "pg_basebackup"), f"--dbname={url}", f"--pgdata={data}"]
    return [*program, "--write-recovery-conf", "--checkpoint=fast", "--wal-method=stream"]
