"""Every example is a real receiver of the real service: each event once, whatever comes twice."""

import hashlib
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.e2e.first_steps import ApiUser, keys_in
from tests.support.missing import missing_component
from tests.support.service_process import PATIENCE_SECONDS, ServiceProcess, free_port

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
INSTALL_SECONDS = 120
pytestmark = pytest.mark.timeout(240)


def fastapi(port: int) -> tuple[Path, list[str]]:
    options = ["--port", str(port), "--log-level", "warning"]
    return EXAMPLES / "fastapi", [sys.executable, "-m", "uvicorn", "receiver:app", *options]


def flask(port: int) -> tuple[Path, list[str]]:
    options = ["--app", "receiver", "run", "--port", str(port)]
    return EXAMPLES / "flask", [sys.executable, "-m", "flask", *options]


def django(port: int) -> tuple[Path, list[str]]:
    return EXAMPLES / "django", [sys.executable, "receiver.py", str(port)]


def express(port: int) -> tuple[Path, list[str]]:
    return installed(EXAMPLES / "express"), ["node", "receiver.js"]


def installed(source: Path) -> Path:
    """The example with its packages, in a folder for what it pins."""
    if not (shutil.which("node") and shutil.which("npm")):
        missing_component("no node and npm: the Express example was not run")
    pinned = hashlib.sha256((source / "package-lock.json").read_bytes()).hexdigest()[:12]
    folder = ROOT / ".cache" / f"express-{pinned}"
    ready = folder / "node_modules" / ".ready"
    folder.mkdir(parents=True, exist_ok=True)
    for path in source.iterdir():
        if path.is_file():
            shutil.copy(path, folder)
    if ready.exists():
        return folder
    ran = subprocess.run(
        ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS,
        check=False,
    )
    if ran.returncode != 0:
        missing_component(f"npm could not install the Express example: {ran.stderr[-300:]}")
    ready.touch()
    return folder


@dataclass
class Example:
    """A receiver process that can be killed and started again."""

    recipe: Callable[[int], tuple[Path, list[str]]]
    port: int
    folder: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/cuepost"

    @property
    def lines(self) -> list[str]:
        log = self.folder / "log"
        return log.read_text().splitlines() if log.exists() else []

    @contextmanager
    def running(self, secret: str) -> Iterator[None]:
        where, command = self.recipe(self.port)
        paths = [str(ROOT / "packages/receiver/src"), os.environ.get("PYTHONPATH", "")]
        environ = os.environ | {
            "CUEPOST_WEBHOOK_SECRET": secret,
            "PORT": str(self.port),
            "RECEIVER_LOG": str(self.folder / "log"),
            "RECEIVER_INBOX": str(self.folder / "inbox"),
            "PYTHONPATH": os.pathsep.join(paths),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        with (self.folder / "said").open("ab") as said:
            process = subprocess.Popen(command, cwd=where, env=environ, stdout=said, stderr=said)
        try:
            wait_until(self._listens, "a receiver that listens", self._said)
            yield
        finally:
            process.kill()
            process.wait(PATIENCE_SECONDS)

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def _said(self) -> str:
        return (self.folder / "said").read_text()


def wait_until(
    condition: Callable[[], bool], what: str, more: Callable[[], object] = lambda: ""
) -> None:
    deadline, pause = time.monotonic() + PATIENCE_SECONDS, threading.Event()
    while not condition():
        assert time.monotonic() < deadline, (what, more())
        pause.wait(0.05)


@pytest.fixture(params=[fastapi, flask, django, express], ids=lambda recipe: recipe.__name__)
def example(request: pytest.FixtureRequest, tmp_path: Path) -> Example:
    folder = tmp_path / "receiver"
    folder.mkdir()
    return Example(request.param, free_port(), folder)


@pytest.fixture
def api_user(example: Example, tmp_path: Path) -> Iterator[ApiUser]:
    settings = {
        "DATA_DIR": str(tmp_path / "data"),
        "PORT": str(free_port()),
        "RECEIVER_HTTP": "true",
        "RECEIVER_NETWORKS": "127.0.0.0/8",
        "RECEIVER_PORTS": str(example.port),
        "RETRY_DELAYS": "1,1",
    }
    with ServiceProcess(settings) as service:
        keys = keys_in(service.greeting)
        assert keys is not None
        yield ApiUser(f"http://127.0.0.1:{settings['PORT']}", keys)


def ended(api_user: ApiUser, delivery_id: str, budget: int = 1) -> Any:
    """The delivery once it is over."""
    found: dict[str, Any] = {}

    def is_over() -> bool:
        listed = {each["id"]: each for each in api_user.get("/v1/deliveries")["data"]}
        found.update(listed[delivery_id])
        return found["status"] in {"delivered", "failed"} and found["budget"] == budget

    wait_until(is_over, "an end", lambda: found)
    return found


def posted(url: str, headers: Mapping[str, str], body: bytes) -> int:
    return httpx2.post(
        url, content=body, headers=dict(headers), trust_env=False, timeout=PATIENCE_SECONDS
    ).status_code


def test_each_event_is_handled_once(example: Example, api_user: ApiUser) -> None:
    webhook = api_user.post("/v1/webhooks", {"url": example.url})
    home = f"/v1/webhooks/{webhook['id']}"
    with example.running(webhook["secret"]):
        test = api_user.post(f"{home}/test", None, status=202)
        assert ended(api_user, test["id"])["status"] == "delivered"
        project = api_user.finish_a_project()
        [first] = api_user.get(f"/v1/deliveries?projectId={project}")["data"]
        assert ended(api_user, first["id"])["status"] == "delivered"
        expected = [
            f"test webhook.test {test['eventId']} ",
            f"fetch project.completed {first['eventId']} {project}",
        ]
        wait_until(lambda: len(example.lines) == 2, "two lines", lambda: example.lines)

        # The same event again, by hand: acknowledged, and not handled a second time.
        api_user.post(f"{home}/deliveries/{first['id']}/retry", None, status=202)
        assert ended(api_user, first["id"], budget=2)["status"] == "delivered"
        sent = api_user.get(f"{home}/deliveries/{first['id']}")["attempts"][-1]
        headers = {each["name"]: each["value"] for each in sent["requestHeaders"]}
        assert posted(example.url, headers, b'{"id": "forged"}') == 400
        assert posted(example.url, {}, b"{}") == 400

    # After kill -9 it still knows what it has had.
    with example.running(f"whsec_{'A' * 43}=,{webhook['secret']}"):
        api_user.post(f"{home}/deliveries/{first['id']}/retry", None, status=202)
        assert ended(api_user, first["id"], budget=3)["status"] == "delivered"
        second = api_user.finish_a_project()
        wait_until(lambda: len(example.lines) > 2, "a third line", lambda: example.lines)
    assert [line[: len(start)] for line, start in zip(example.lines, expected, strict=False)] == (
        expected
    )
    assert [line.split()[-1] for line in example.lines[2:]] == [second]
