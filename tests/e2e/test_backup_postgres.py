"""A busy PostgreSQL is dumped and restored by the commands of the documentation, as they stand."""

import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path

from tests.e2e.test_backup import EVENTS, carry_on
from tests.faults.harness import Harness, harness
from tests.support.postgres import PostgresServer, fresh_database_sync
from tests.support.postgres_binaries import server_binaries
from tests.support.service_process import Ended, ServiceProcess, free_port

OPERATIONS = Path(__file__).parents[2] / "docs" / "operations.md"
RESTORED = "cuepost_restored"


def documented() -> tuple[str, str]:
    """How to dump, and how to restore."""
    section = OPERATIONS.read_text().partition("\n## PostgreSQL\n")[2].partition("\n## ")[0]
    dump, restore = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    return dump, restore


def test_a_dump_of_a_busy_database_is_carried_on_with(tmp_path: Path) -> None:
    with PostgresServer() as server, fresh_database_sync(server.url) as url:
        shell = Shell(tmp_path, url, url.rpartition("/")[0] + f"/{RESTORED}")
        dump, restore = documented()
        settings = {"DATA_DIR": str(tmp_path / "data"), "DATABASE_URL": url}
        with harness(settings) as it:
            with ServiceProcess(it.settings) as service, it.load() as load:
                load.wait_for(EVENTS)
                it.receiver.hold()
                load.wait_for(EVENTS)
                shell.run(dump)
                load.wait_for(EVENTS)
                it.receiver.release()
                load.stop()
                it.wait_until_settled()
                shell.run(restore)
                assert service.stop() == Ended(0, "")
            it.require_nothing_lost(load)
            carry_on(at(it, shell.restored), len(load.acknowledged) + EVENTS)


class Shell:
    def __init__(self, folder: Path, url: str, restored: str) -> None:
        self.restored = restored
        self._folder = folder
        path = f"{next(server_binaries())}:{os.environ['PATH']}"
        self._environ = os.environ | {
            "PATH": path,
            "CUEPOST_DATABASE_URL": url,
            "RESTORED_URL": restored,
        }

    def run(self, commands: str) -> None:
        ran = subprocess.run(
            ["/bin/sh", "-eu", "-c", commands],
            cwd=self._folder,
            env=self._environ,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert (ran.returncode, ran.stderr) == (0, "")


def at(it: Harness, url: str) -> Harness:
    settings = it.settings | {"DATABASE_URL": url, "PORT": str(free_port())}
    api_user = replace(it.api_user, base_url=f"http://127.0.0.1:{settings['PORT']}")
    return replace(it, settings=settings, api_user=api_user)
