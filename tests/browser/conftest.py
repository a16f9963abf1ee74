"""A browser for all of these tests, and services for them to look at."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.support.browser import opened_browser
from tests.support.populated_pages import Populated, populated
from tests.support.service_process import ServiceProcess, free_port, run

COMMAND = re.compile(r"Link   cuepost (accounts) (sign-in-link) (\S+)")


@pytest.fixture
def browser() -> Iterator[Browser]:
    """For one test: while it is open its event loop runs, and no other caller can have one."""
    with opened_browser() as opened:
        yield opened


@pytest.fixture
def printed_link(tmp_path: Path) -> Iterator[str]:
    """Of a service that has just been started for the first time."""
    settings = {"DATA_DIR": str(tmp_path / "data"), "PORT": str(free_port())}
    with ServiceProcess(settings) as service:
        found = COMMAND.search(service.greeting)
        assert found is not None
        yield json.loads(run(settings, *found.groups(), "--json").stdout)["signInUrl"]


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Populated]:
    with populated(tmp_path_factory.mktemp("populated")) as made:
        yield made
