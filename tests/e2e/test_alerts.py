"""An alert survives a kill between its commit and its e-mail: one record, and the e-mail later."""

import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.e2e.first_steps import ApiUser, Keys
from tests.support.mail_server import mail_server
from tests.support.service_process import PATIENCE_SECONDS, ServiceProcess, free_port, run


def rows(store: Path, sql: str) -> list[Any]:
    with closing(sqlite3.connect(store)) as file, file:
        return file.execute(sql).fetchall()


def wait_for(store: Path, sql: str) -> None:
    limit = time.monotonic() + PATIENCE_SECONDS
    while not rows(store, sql):
        assert time.monotonic() < limit, sql


def test_a_kill_before_the_mail_is_sent_loses_nothing(tmp_path: Path) -> None:
    port, closed = free_port(), free_port()
    settings = {
        "DATA_DIR": str(tmp_path / "data"),
        "PORT": str(free_port()),
        "RETRY_DELAYS": "0.1",
        "RECEIVER_HTTP": "true",
        "RECEIVER_NETWORKS": "127.0.0.0/8",
        "RECEIVER_PORTS": str(closed),
        "SMTP_URL": f"smtp://127.0.0.1:{port}",
    }
    made = json.loads(run(settings, "setup", "--json").stdout)
    store = tmp_path / "data" / "cuepost.sqlite3"
    rows(store, "UPDATE users SET email = 'me@example.com'")
    user = ApiUser(f"http://127.0.0.1:{settings['PORT']}", Keys(made["apiKey"], made["serviceKey"]))
    with ServiceProcess(settings) as service:
        user.post("/v1/webhooks", {"url": f"http://127.0.0.1:{closed}/hook"})
        user.finish_a_project()
        # No mail server runs, so that the e-mail has been tried and waits.
        wait_for(store, "SELECT 1 FROM alert_mails WHERE attempts_made > 0")
        service.kill()
    assert rows(store, "SELECT kind, finished_at FROM alerts") == [("failing", None)]

    with mail_server(port) as server, ServiceProcess(settings) as service:
        server.wait_for(1)
        wait_for(store, "SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM alert_mails)")
        service.stop()
        assert server.subjects == ["[cuepost] Deliveries to 127.0.0.1 are failing"]
    assert rows(store, "SELECT kind, finished_at, announced FROM alerts") == [("failing", None, 1)]
