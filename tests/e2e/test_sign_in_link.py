"""A link that lets someone in is printed to a terminal; into a log goes the command for one."""

import os
import pty
import re
import select
import subprocess
import time
from pathlib import Path

import pytest

from tests.support.service_process import (
    PATIENCE_SECONDS,
    ServiceProcess,
    command,
    environment,
    free_port,
)

LINK = re.compile(r"http://\S+/sign-in/[A-Za-z0-9_-]+")


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, str]:
    return {"DATA_DIR": str(tmp_path / "data"), "PORT": str(free_port())}


def greeting_on_a_terminal(settings: dict[str, str]) -> str:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command("serve"), env=environment(settings), stdin=subprocess.DEVNULL, stdout=theirs
    )
    os.close(theirs)
    text, deadline = b"", time.monotonic() + PATIENCE_SECONDS
    try:
        while b"Store" not in text and time.monotonic() < deadline:
            if select.select([ours], [], [], 1)[0]:
                text += os.read(ours, 65_536)
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)
        os.close(ours)
    return text.decode()


def test_each_start_on_a_terminal_prints_a_link_while_no_user_has_a_password(
    settings: dict[str, str],
) -> None:
    links = [LINK.search(greeting_on_a_terminal(settings)) for _ in range(2)]
    assert None not in links


def test_elsewhere_the_command_is_printed_and_no_link_is_made(settings: dict[str, str]) -> None:
    for _ in range(2):
        with ServiceProcess(settings) as service:
            assert LINK.search(service.greeting) is None
            assert re.search(r"\n  Link   cuepost accounts sign-in-link \S{36}\n", service.greeting)
