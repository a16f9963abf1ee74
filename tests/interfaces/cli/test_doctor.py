"""`cuepost doctor`: what it finds, how it says to fix it, and that it changes nothing."""

import json
import resource
import shutil
import socket
import sqlite3
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import httpx2
import pytest

from cuepost.adapters import clock_state
from cuepost.bootstrap import machine_checks
from cuepost.bootstrap.machine_checks import clock_checks
from cuepost.interfaces.cli.runtime import CheckResult, Level
from tests.interfaces.cli.terminal import Terminal
from tests.support.service_process import ServiceProcess, free_port

CHECKS = [
    *("settings", "packages", "folder", "disk", "master key", "limits", "clock"),
    *("store", "schema", "secrets"),
]
LOCAL = {"RECEIVER_NETWORKS": "127.0.0.0/8", "RECEIVER_PORTS": "1-65535", "RECEIVER_HTTP": "true"}


@pytest.fixture(autouse=True)
def _clock_in_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the clock of this machine does."""
    monkeypatch.setattr(machine_checks, "is_synchronised", lambda: True)


def findings(terminal: Terminal, *options: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """Exit code, and the last finding of each check."""
    ran = terminal.run("doctor", "--json", *options)
    found = json.loads(ran.stdout)
    assert found["healthy"] == (ran.exit_code == 0)
    return ran.exit_code, {each["check"]: each for each in found["findings"]}


def levels(found: dict[str, dict[str, Any]]) -> dict[str, str]:
    return {name: each["level"] for name, each in found.items() if each["level"] != "ok"}


def test_a_store_that_is_well_has_no_finding(terminal: Terminal) -> None:
    terminal = terminal.with_settings(MASTER_KEY=b64encode(bytes(32)).decode())
    terminal.words("setup")
    code, found = findings(terminal, "--offline")
    assert (code, levels(found), list(found)) == (0, {}, CHECKS)


def test_an_empty_folder_is_well_and_stays_empty(empty_sqlite: Terminal, tmp_path: Path) -> None:
    code, found = findings(empty_sqlite, "--offline")
    assert (code, levels(found)) == (0, {})
    assert "will be created at the first start" in found["store"]["sentence"]
    assert list(tmp_path.iterdir()) == []


def test_words_have_a_mark_and_a_way_to_fix(empty_sqlite: Terminal) -> None:
    ran = empty_sqlite.with_settings(DATABASE_URL="postgresql://127.0.0.1:1/x").run(
        "doctor", "--offline"
    )
    assert ran.exit_code == 1
    assert "✓ settings: The settings can be used" in ran.stdout
    assert "✗ store: postgresql://127.0.0.1:1/x: " in ran.stdout
    assert "\n    Start the database, and check address, user and password" in ran.stdout
    assert ran.stdout.endswith("\n1 failures, 0 warnings.\n")


def test_a_setting_that_cannot_be_used_is_said_in_one_line(empty_sqlite: Terminal) -> None:
    code, said = empty_sqlite.with_settings(PORT="none").refusal("doctor")
    assert (code, said.count("\n")) == (2, 1)
    assert "CUEPOST_PORT='none'" in said


def test_a_database_without_a_schema_names_the_command(empty_postgres: Terminal) -> None:
    code, found = findings(empty_postgres, "--offline")
    assert (code, levels(found)) == (1, {"schema": "failure"})
    assert found["schema"]["fix"] == "Run: cuepost migrate"


@pytest.mark.parametrize(
    ("revision", "oldest_code", "reported"),
    [
        ("0001", None, {"schema": "warning"}),
        ("9999", "9999", {"schema": "failure"}),
        ("9999", "0001", {}),
    ],
)
def test_an_older_and_a_newer_schema_are_told_apart(
    empty_sqlite: Terminal,
    tmp_path: Path,
    revision: str,
    oldest_code: str | None,
    reported: dict[str, str],
) -> None:
    empty_sqlite.words("setup")
    with closing(sqlite3.connect(tmp_path / "data" / "cuepost.sqlite3")) as store, store:
        store.execute(
            "UPDATE alembic_version SET version_num = ?, oldest_code = ?", (revision, oldest_code)
        )
    _, found = findings(empty_sqlite, "--offline")
    assert levels(found) == reported


def test_a_damaged_file_is_no_store(empty_sqlite: Terminal, tmp_path: Path) -> None:
    empty_sqlite.words("setup")
    (tmp_path / "data" / "cuepost.sqlite3").write_bytes(b"no database" * 1_000)
    for each in (tmp_path / "data").glob("*-wal"):
        each.unlink()
    code, found = findings(empty_sqlite, "--offline")
    assert (code, levels(found)) == (1, {"store": "failure"})


def test_a_key_and_a_folder_that_others_can_read(empty_sqlite: Terminal, tmp_path: Path) -> None:
    empty_sqlite.words("setup")
    (tmp_path / "data").chmod(0o755)
    (tmp_path / "data" / "master.key").chmod(0o644)
    code, found = findings(empty_sqlite, "--offline")
    assert (code, levels(found)) == (1, {"folder": "warning", "master key": "failure"})
    assert found["folder"]["fix"] == f"Run: chmod 700 {tmp_path / 'data'}"


def test_a_key_that_opens_no_secret(empty_sqlite: Terminal) -> None:
    with receiving(empty_sqlite) as (terminal, _):
        other = terminal.with_settings(MASTER_KEY=b64encode(bytes(32)).decode())
        code, found = findings(other, "--offline")
    assert (code, levels(found)) == (1, {"secrets": "failure"})
    assert found["secrets"]["sentence"] == (
        "1 of 1 stored values are encrypted with a missing master key."
    )


@contextmanager
def receiving(terminal: Terminal) -> Iterator[tuple[Terminal, socket.socket]]:
    """A running service with one endpoint, at a port of this machine that takes connections."""
    port = free_port()
    terminal = terminal.with_settings(PORT=str(port), **LOCAL)
    keys = terminal.json("setup")
    settings = {name.removeprefix("CUEPOST_"): text for name, text in terminal.environ.items()}
    with ServiceProcess(settings), socket.create_server(("127.0.0.1", 0)) as receiver:
        made = httpx2.post(
            f"http://127.0.0.1:{port}/v1/webhooks",
            json={"url": f"http://127.0.0.1:{receiver.getsockname()[1]}/hook"},
            headers={"Authorization": f"Bearer {keys['apiKey']}"},
            trust_env=False,
        )
        assert made.status_code == 201
        yield terminal, receiver


def test_a_running_service_and_its_receivers_are_reached(empty_sqlite: Terminal) -> None:
    with receiving(empty_sqlite) as (terminal, receiver):
        code, found = findings(terminal)
        assert (code, levels(found)) == (0, {})
        assert found["address"]["sentence"].startswith("The service answers at http://127.0.0.1:")
        assert found["receivers"]["sentence"] == "Names and connections of 1 receivers work."
        receiver.close()
        code, found = findings(terminal)
        assert (code, levels(found)) == (0, {"egress": "warning"})
        assert "takes no connection" in found["egress"]["sentence"]


def test_something_else_at_the_address_is_not_taken_for_the_service(
    empty_sqlite: Terminal, other_server: str
) -> None:
    code, found = findings(empty_sqlite.with_settings(BASE_URL=other_server))
    assert (code, found["address"]["level"]) == (0, "warning")
    assert "is not cuepost" in found["address"]["sentence"]


@pytest.fixture
def other_server() -> Iterator[str]:
    class Answering(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Answering) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join(10)


def test_settings_for_local_work_are_not_for_a_public_address(empty_sqlite: Terminal) -> None:
    public = empty_sqlite.with_settings(BASE_URL="http://cuepost.example.com", RECEIVER_HTTP="true")
    code, found = findings(public, "--offline")
    assert (code, levels(found)) == (0, {"settings": "warning"})


def test_variables_of_a_proxy_are_mentioned(empty_sqlite: Terminal) -> None:
    behind = Terminal({**empty_sqlite.environ, "HTTPS_PROXY": "http://proxy:3128"})
    code, found = findings(behind, "--offline")
    assert (code, levels(found)) == (0, {"proxy": "warning"})
    assert found["proxy"]["sentence"].startswith("HTTPS_PROXY: ")


def test_a_small_limit_of_open_files_is_found(
    empty_sqlite: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 256))
    _, found = findings(empty_sqlite, "--offline")
    assert levels(found) == {"limits": "warning"}
    assert "LimitNOFILE=1536" in found["limits"]["fix"]


@pytest.mark.parametrize(("free", "level"), [(10**6, "failure"), (5 * 10**8, "warning")])
def test_a_disk_that_is_full_or_nearly_so(
    empty_sqlite: Terminal, monkeypatch: pytest.MonkeyPatch, free: int, level: str
) -> None:
    class Usage:
        def __init__(self, _: Path) -> None:
            self.free = free

    monkeypatch.setattr(shutil, "disk_usage", Usage)
    _, found = findings(empty_sqlite, "--offline")
    assert levels(found) == {"disk": level}


@pytest.mark.parametrize(
    ("ahead", "in_step", "level"),
    [(0, True, "ok"), (0, None, "ok"), (0, False, "warning"), (31, True, "failure")],
)
def test_a_clock_that_is_off_is_found(
    monkeypatch: pytest.MonkeyPatch, ahead: int, in_step: bool | None, level: str
) -> None:
    monkeypatch.setattr(machine_checks, "is_synchronised", lambda: in_step)
    for sign in (1, -1):
        [found] = clock_checks(timedelta(seconds=sign * ahead))
        assert found.level == level


def test_the_system_tells_whether_its_clock_is_in_step() -> None:
    assert clock_state.is_synchronised() in {True, False, None}


def test_what_is_well_needs_no_fixing() -> None:
    assert CheckResult("x", Level.OK, "Well.").as_json()["fix"] == ""
