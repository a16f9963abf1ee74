"""The demo's service: `cuepost serve` as a separate process, in a temporary folder."""

import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cuepost.interfaces.cli.output import refusal_reason

TIMEOUT_SECONDS = 30.0
POLL_SECONDS = 0.05
RETRY_SECONDS = (1, 2)


class DemoFailed(Exception):
    """A step failed; the message says what was expected and what happened."""


@dataclass(frozen=True, slots=True)
class Service:
    """A client of the service; a call with an unexpected status raises DemoFailed."""

    port: int
    folder: Path
    environ: Mapping[str, str] = field(repr=False)
    api_key: str = field(repr=False)
    service_key: str = field(repr=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def get(self, path: str) -> Any:
        return self._call("GET", path, 200, self.api_key)

    def post(self, path: str, body: Mapping[str, Any] | None = None, *, expected: int) -> Any:
        return self._call("POST", path, expected, self.api_key, body)

    def patch(self, path: str, body: Mapping[str, Any]) -> Any:
        return self._call("PATCH", path, 200, self.api_key, body)

    def report(self, project_id: str, status: str, **more: Any) -> None:
        """Report a milestone, as the processing pipeline does."""
        report = {"reportId": f"{project_id}/{status}", "projectId": project_id, "status": status}
        body = {"milestones": [report | more]}
        [answer] = self._call("POST", "/v1/milestones", 200, self.service_key, body)["results"]
        if not answer["accepted"]:
            raise DemoFailed(f"the milestone '{status}' was not accepted: {refusal_reason(answer)}")

    def put(self, path: Path, project_id: str, kind: str) -> dict[str, Any]:
        """Upload an exported file, as a pipeline without its own media store does."""
        options = ("--project", project_id, "--kind", kind, "--json")
        return _json_of_command(self.environ, "media", "put", str(path), *options)

    def download(self, link: str) -> bytes:
        """Download without an API key: the link is signed."""
        status, content = self._send("GET", link.removeprefix(self.url), {})
        if status != 200:
            raise DemoFailed(f"the download link answered {status}: {content.decode()}")
        return content

    def is_ready(self) -> bool:
        try:
            self._call("GET", "/readyz", 200, self.api_key)
        except DemoFailed:
            return False
        return True

    def _call(
        self,
        method: str,
        path: str,
        expected: int,
        key: str,
        body: Mapping[str, Any] | None = None,
    ) -> Any:
        headers = {"Authorization": f"Bearer {key}"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        sent = None if body is None else json.dumps(body)
        status, content = self._send(method, path, headers, sent)
        if status != expected:
            raise DemoFailed(f"{method} {path} answered {status}: {content.decode()}")
        return json.loads(content)

    def _send(
        self, method: str, path: str, headers: Mapping[str, str], body: str | None = None
    ) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_SECONDS)
        try:
            connection.request(method, path, body, dict(headers))
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise DemoFailed(f"{method} {path} got no response: {error}") from error
        finally:
            connection.close()


@contextmanager
def running_service(receiver_port: int) -> Iterator[Service]:
    """Start a service; its settings allow loopback receivers, which production must not do."""
    with tempfile.TemporaryDirectory(prefix="cuepost-demo-") as folder:
        port = _free_port()
        settings = {
            "DATA_DIR": folder,
            "PORT": str(port),
            "RETRY_DELAYS": ",".join(map(str, RETRY_SECONDS)),
            "RECEIVER_HTTP": "true",
            "RECEIVER_NETWORKS": "127.0.0.0/8",
            "RECEIVER_PORTS": str(receiver_port),
        }
        environ, log = _environ(settings), Path(folder, "service.log")
        keys = _json_of_command(environ, "setup", "--json")
        try:
            with _process(environ, log) as process:
                service = Service(port, Path(folder), environ, keys["apiKey"], keys["serviceKey"])
                _wait_until_ready(service, process)
                yield service
        except DemoFailed as failure:
            logged = log.read_text(errors="replace").strip()
            raise DemoFailed(f"{failure}\n{logged}" if logged else str(failure)) from failure


def wait_until(holds: Callable[[], bool], seconds: float) -> bool:
    """Poll the condition; False if it does not hold in time."""
    deadline, pause = time.monotonic() + seconds, threading.Event()
    while not holds():
        if time.monotonic() > deadline:
            return False
        pause.wait(POLL_SECONDS)
    return True


def _json_of_command(environ: Mapping[str, str], *arguments: str) -> dict[str, Any]:
    """Run a command and parse the JSON that it prints."""
    done = subprocess.run(
        _command(*arguments),
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        command = f"'cuepost {arguments[0]}'"
        raise DemoFailed(f"{command} exited with {done.returncode}: {done.stderr.strip()}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@contextmanager
def _process(environ: Mapping[str, str], log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    with log.open("wb") as file:
        process = subprocess.Popen(
            _command("serve"),
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=file,
        )
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(TIMEOUT_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait_until_ready(service: Service, process: "subprocess.Popen[bytes]") -> None:
    def has_started_or_died() -> bool:
        return process.poll() is not None or service.is_ready()

    started = wait_until(has_started_or_died, TIMEOUT_SECONDS)
    if process.poll() is not None:
        raise DemoFailed(f"'cuepost serve' exited at once with code {process.returncode}")
    if not started:
        raise DemoFailed(f"'cuepost serve' was not ready within {TIMEOUT_SECONDS:.0f} s")


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "cuepost", *arguments]


def _environ(settings: Mapping[str, str]) -> dict[str, str]:
    """The environment without CUEPOST_ variables of the developer's own service."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CUEPOST_")}
    return kept | {f"CUEPOST_{name}": value for name, value in settings.items()}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
