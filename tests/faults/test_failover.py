"""The primary is killed under load and its synchronous standby takes its place: nothing is lost."""

import os
import time
from pathlib import Path

import pytest

from tests.faults.test_database_faults import EVERYTHING, command, under_load
from tests.support.postgres import PostgresServer
from tests.support.postgres_standby import PostgresStandby

FAILOVERS = int(os.environ.get("CUEPOST_TEST_FAILOVERS", "1"))
RECOVERY_SECONDS = 10.0
DATABASE = "cuepost"
pytestmark = pytest.mark.timeout(600)


@pytest.mark.parametrize("number", range(FAILOVERS))
def test_everything_acknowledged_is_delivered(tmp_path: Path, number: int) -> None:
    with PostgresServer(durable=True) as primary, PostgresStandby(primary) as standby:
        command(primary.url, f"CREATE DATABASE {DATABASE}")
        # From here on a commit is not confirmed before the standby has it.
        synchronous = "ALTER SYSTEM SET synchronous_standby_names = '*'"
        command(primary.url, synchronous, "SELECT pg_reload_conf()")
        settings = {
            "DATA_DIR": str(tmp_path / "data"),
            "DATABASE_URL": on_both(primary, standby),
        }
        with under_load(settings, EVERYTHING) as case:
            began = time.time()
            primary.stop("kill")
            standby.promote()
            case.it.outages.append((began, time.time()))
            case.require_recovery(time.monotonic(), RECOVERY_SECONDS)
            case.require_all_well()


def on_both(primary: PostgresServer, standby: PostgresServer) -> str:
    beginning = primary.url.rpartition("/")[0]
    return f"{beginning},{standby.url.rpartition('@')[2].rpartition('/')[0]}/{DATABASE}"
