"""Operator commands work while an embedded server writes to the same file."""

import asyncio
import sqlite3
from pathlib import Path

import anyio
import httpx2

from tests.interfaces.cli.terminal import Terminal
from tests.support.service_process import (
    PATIENCE_SECONDS,
    Ended,
    ServiceProcess,
    free_port,
    run,
)

WRITERS = 4
ROUNDS = 5


class WriteLoad:
    """Creates projects without a pause, and remembers every one that was acknowledged."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client
        self._enough = asyncio.Event()
        self.acknowledged: list[str] = []

    async def write(self) -> None:
        while not self._enough.is_set():
            answer = await self._client.post("/v1/projects", json={"name": "Trailer"})
            assert answer.status_code == 201, answer.text
            self.acknowledged.append(answer.json()["id"])

    def stop(self) -> None:
        self._enough.set()


def do_what_operators_do(terminal: Terminal, settings: dict[str, str]) -> list[str]:
    """Commands in this process and in one of their own; the accounts that are left."""
    assert run(settings, "setup").stdout.startswith("Already set up;")
    left = []
    for _ in range(ROUNDS):
        stays, goes = (terminal.json("accounts", "create")["id"] for _ in range(2))
        key = terminal.json("keys", "create", "--account", stays)
        terminal.json("accounts", "open-access", stays)
        terminal.json("erase-account", goes, "--yes")
        assert terminal.json("keys", "revoke", key["id"])["revokedAt"] is not None
        assert terminal.json("migrate") == {"upToDate": True}
        left.append(stays)
    return left


async def test_commands_and_a_server_under_write_load_do_not_disturb_one_another(
    tmp_path: Path,
) -> None:
    settings = {"DATA_DIR": str(tmp_path), "PORT": str(free_port()), "RATE_LIMIT": "1000000"}
    terminal = Terminal({}).with_settings(**settings)
    first = await asyncio.to_thread(terminal.json, "setup")
    with ServiceProcess(settings) as server:
        headers = {"Authorization": f"Bearer {first['apiKey']}"}
        base_url = f"http://127.0.0.1:{settings['PORT']}"
        async with httpx2.AsyncClient(base_url=base_url, headers=headers, timeout=30) as client:
            load = WriteLoad(client)
            with anyio.fail_after(PATIENCE_SECONDS):
                async with asyncio.TaskGroup() as group:
                    for _ in range(WRITERS):
                        group.create_task(load.write())
                    left = await asyncio.to_thread(do_what_operators_do, terminal, settings)
                    load.stop()
        assert server.stop() == Ended(0, "")

    accounts = (await asyncio.to_thread(terminal.json, "accounts", "list"))["data"]
    assert [account["id"] for account in accounts] == [first["accountId"], *left]
    assert len(load.acknowledged) > WRITERS
    with sqlite3.connect(tmp_path / "cuepost.sqlite3") as connection:
        [(verdict,)] = connection.execute("PRAGMA integrity_check")
        stored = connection.execute("SELECT lower(hex(id)) FROM projects").fetchall()
    connection.close()
    assert verdict == "ok"
    assert {row[0] for row in stored} == {each.replace("-", "") for each in load.acknowledged}
