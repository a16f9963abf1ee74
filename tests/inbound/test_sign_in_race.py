"""Sixty wrong passwords at once: ten are looked at, by one process or by two."""

import asyncio
import json
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.inbound.browser import Person
from tests.support.postgres import fresh_database_sync
from tests.support.service_process import ServiceProcess, free_port, run

EMAIL, PASSWORD = "ada@example.com", "correct horse battery"


def started(settings: dict[str, str], half: str, count: int) -> Iterator[list[str]]:
    with ExitStack() as running:
        addresses = []
        for _ in range(count):
            port = str(free_port())
            running.enter_context(ServiceProcess({**settings, "PORT": port}, half))
            addresses.append(f"http://127.0.0.1:{port}")
        yield addresses


@pytest.fixture
def embedded(tmp_path: Path) -> dict[str, str]:
    return {"DATA_DIR": str(tmp_path / "data")}


@pytest.fixture
def on_postgres(tmp_path: Path, postgres_url: str) -> Iterator[dict[str, str]]:
    key = b64encode(bytes(32)).decode()
    with fresh_database_sync(postgres_url) as url:
        settings = {"DATA_DIR": str(tmp_path / "data"), "MASTER_KEY": key, "DATABASE_URL": url}
        assert run(settings, "migrate").returncode == 0
        yield settings


async def race(settings: dict[str, str], addresses: Sequence[str]) -> Counter[int]:
    made = json.loads(run(settings, "setup", "--json").stdout)
    account = made["accountId"]
    link = json.loads(run(settings, "accounts", "sign-in-link", account, "--json").stdout)
    async with Person(addresses[0]) as owner:
        path = "/sign-in/" + link["signInUrl"].rpartition("/")[2]
        await owner.choose_password(path, EMAIL, PASSWORD)
    thieves = [Person(address) for address in addresses]
    for thief in thieves:
        await thief.see("/sign-in")
    guesses = [thieves[each % len(thieves)].guess(EMAIL, f"wrong {each}") for each in range(60)]
    statuses = Counter(await asyncio.gather(*guesses))
    for thief in thieves:
        await thief.client.aclose()
    return statuses


async def test_one_process_on_the_embedded_store(embedded: dict[str, str]) -> None:
    for addresses in started(embedded, "serve", 1):
        assert await race(embedded, addresses) == {401: 10, 429: 50}


async def test_two_processes_on_postgresql(on_postgres: dict[str, str]) -> None:
    for addresses in started(on_postgres, "api", 2):
        assert await race(on_postgres, addresses) == {401: 10, 429: 50}
