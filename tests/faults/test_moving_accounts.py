"""An account moves between databases under load, with kill -9 of everything: nothing is lost."""

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

import httpx2
import pytest
import sqlalchemy as sa

from cuepost.adapters.storage.tables import accounts
from tests.e2e.first_steps import keys_in
from tests.faults.harness import Harness, harness
from tests.support.load import Load
from tests.support.postgres import fresh_database_sync
from tests.support.service_process import ServiceProcess, environment, free_port, run, start
from tests.support.store_rows import AnyStore, snapshot_rows

MOVES = int(os.environ.get("CUEPOST_TEST_ACCOUNT_MOVES", "1"))
EVENTS_PER_ROUND = 20
PATIENCE_SECONDS = 60.0
pytestmark = pytest.mark.timeout(3_600)


@dataclass(slots=True)
class Cell:
    """A service on a database of its own."""

    settings: dict[str, str]
    service_key: str
    service: ServiceProcess | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.settings['PORT']}"

    def serve(self) -> None:
        self.service = ServiceProcess(self.settings)

    def kill(self) -> None:
        if self.service is not None:
            with self.service:
                self.service.kill()
            self.service = None

    def accounts(self, *arguments: str) -> str:
        done = run(self.settings, "accounts", *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout


@dataclass(slots=True)
class RoutedLoad(Load):
    """Reports to one of several cells; which one can be changed at any time."""

    cell: Cell | None = None
    asked: dict[int, Cell] = field(default_factory=dict)

    def _sent(self, client: httpx2.Client, milestones: list[dict[str, str]]) -> bool:
        cell = self.cell
        assert cell is not None
        client.base_url = cell.url
        client.headers["Authorization"] = f"Bearer {cell.service_key}"
        try:
            return Load._sent(self, client, milestones)
        finally:
            self.asked[threading.get_ident()] = cell

    def route_to(self, cell: Cell) -> None:
        """Returns when no request waits for an answer of another cell."""
        self.cell, deadline = cell, time.monotonic() + PATIENCE_SECONDS
        while any(each is not cell for each in self.asked.values()):
            assert time.monotonic() < deadline
            self.pause()


@dataclass(slots=True)
class Moving:
    it: Harness
    load: RoutedLoad
    account_id: str
    folder: Path
    moves: int = 0

    def move(self, source: Cell, target: Cell) -> None:
        file = str(self.folder / f"{self.moves}.gz")
        export = ("export", self.account_id, "--to", file)
        self.killed_in(source, "leaving", source, *export)
        if not Path(file).exists():
            source.accounts(*export)
        self.killed_in(target, "arriving", target, "import", file)
        target.accounts("import", file)
        self.load.route_to(target)
        self.killed_in(source, "moved", None, "finish-move", self.account_id, "--yes")
        reported = source.accounts("finish-move", self.account_id, "--yes", "--json")
        target.accounts("release", self.account_id, json.loads(reported)["code"])
        assert [each.state for each in self.states(source, target)] == ["moved", "live"]
        self.it.settings = target.settings
        self.moves += 1

    def killed_in(self, cell: Cell, state: str, beside: Cell | None, *arguments: str) -> None:
        """A command, as soon as the account has that state; and with it the service `beside`."""
        with start(environment(cell.settings), "accounts", *arguments) as process:
            deadline = time.monotonic() + PATIENCE_SECONDS
            while not any(each.state == state for each in self.states(cell)):
                assert time.monotonic() < deadline, process.poll()
                self.load.pause()
            # Somewhat later from round to round.
            for _ in range(self.moves % 10):
                self.load.pause()
            process.kill()
            process.communicate()
        if beside is not None:
            beside.kill()
            if beside.settings == self.it.settings:
                self.it.note_leases()
            beside.serve()

    def states(self, *cells: Cell) -> list[sa.Row[tuple[object, ...]]]:
        found = sa.select(accounts.c.state).where(accounts.c.id == UUID(self.account_id))
        return [row for cell in cells for row in _asked(self.it, cell, found)]


def _asked(
    it: Harness, cell: Cell, statement: sa.Select[tuple[object]]
) -> list[sa.Row[tuple[object, ...]]]:
    async def look(store: AnyStore) -> list[sa.Row[tuple[object, ...]]]:
        return list(await snapshot_rows(store, statement))

    before, it.settings = it.settings, cell.settings
    try:
        return it.ask(look)
    finally:
        it.settings = before


@contextmanager
def cells(it: Harness, url: str, folder: Path) -> Iterator[tuple[Cell, Cell]]:
    source = Cell(it.settings, it.api_user.keys.service)
    whole = it.settings | {
        "DATA_DIR": str(folder / "target"),
        "DATABASE_URL": url,
        "PORT": str(free_port()),
    }
    keys = keys_in(run(whole, "setup").stdout)
    assert keys is not None
    target = Cell(whole, keys.service)
    try:
        for each in (source, target):
            each.serve()
        yield source, target
    finally:
        for each in (source, target):
            each.kill()


def moved_again_and_again(
    settings: dict[str, str], postgres_url: str, folder: Path, moves: int
) -> None:
    with ExitStack() as stack:
        it = stack.enter_context(harness(settings))
        url = stack.enter_context(fresh_database_sync(postgres_url))
        here, there = stack.enter_context(cells(it, url, folder))
        [account] = json.loads(here.accounts("list", "--json"))["data"]
        plain = it.load()
        load = RoutedLoad(plain.base_urls, plain.key, plain.projects, plain.pace, cell=here)
        with load:
            moving = Moving(it, load, account["id"], folder)
            for _ in range(moves):
                load.wait_for(EVENTS_PER_ROUND)
                moving.move(here, there)
                here, there = there, here
            load.wait_for(EVENTS_PER_ROUND)
            load.stop()
            it.wait_until_settled()
        assert load.answers[503], "no call has noticed the move"
        it.require_nothing_lost(load)


def test_from_postgresql_to_postgresql(
    postgres_settings: dict[str, str], postgres_url: str, tmp_path: Path
) -> None:
    """An odd number of moves ends in the other database; an account that comes back is the same."""
    moved_again_and_again(postgres_settings, postgres_url, tmp_path, MOVES)


def test_from_an_embedded_store_to_postgresql(
    sqlite_settings: dict[str, str], postgres_url: str, tmp_path: Path
) -> None:
    moved_again_and_again(sqlite_settings, postgres_url, tmp_path, 1)
