"""A standby of a PostgreSQL server for tests: it follows by streaming, and can be promoted."""

import asyncio
import subprocess
from pathlib import Path

import asyncpg

from tests.support.postgres import PostgresDidNotStart, PostgresServer
from tests.support.postgres_binaries import readable_binaries

_COPY_LIMIT_SECONDS = 60.0


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
        copied = subprocess.run(
            self._user.command(_copying(self._binaries, self._primary.url, self._data)),
            cwd=self.folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=_COPY_LIMIT_SECONDS,
            check=False,
            **self._user.popen_arguments(),
        )
        if copied.returncode != 0:
            raise PostgresDidNotStart(copied.stdout + copied.stderr)


def _copying(binaries: Path, url: str, data: Path) -> list[str]:
    program = [str(binaries / "pg_basebackup"), f"--dbname={url}", f"--pgdata={data}"]
    return [*program, "--write-recovery-conf", "--checkpoint=fast", "--wal-method=stream"]
