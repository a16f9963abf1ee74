"""A running service with its OpenAPI document, as someone who generates a client finds it."""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from tests.e2e.first_steps import keys_in
from tests.support.recording_receiver import RecordingReceiver
from tests.support.service_process import PATIENCE_SECONDS, ServiceProcess, free_port


@dataclass(frozen=True)
class SimulationState:
    """Where a client is generated, and what its program is told."""

    folder: Path
    document: Path
    receiver: RecordingReceiver
    environ: dict[str, str]

    def run(self, *command: str | Path) -> str:
        ran = subprocess.run(
            command,
            cwd=self.folder,
            env=os.environ | self.environ,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[SimulationState]:
    with RecordingReceiver() as receiver:
        settings = {
            "DATA_DIR": str(tmp_path / "data"),
            "PORT": str(free_port()),
            "RECEIVER_HTTP": "true",
            "RECEIVER_NETWORKS": "127.0.0.0/8",
            "RECEIVER_PORTS": str(receiver.port),
        }
        base_url = f"http://127.0.0.1:{settings['PORT']}"
        with ServiceProcess(settings | {"BASE_URL": base_url}) as service:
            keys = keys_in(service.greeting)
            assert keys is not None
            shown = httpx2.get(f"{base_url}/openapi.json", trust_env=False)
            document = tmp_path / "openapi.json"
            document.write_bytes(shown.content)
            environ = {
                "CLIENT_BASE_URL": base_url,
                "CLIENT_API_KEY": keys.api,
                "CLIENT_SERVICE_KEY": keys.service,
                "CLIENT_RECEIVER_URL": receiver.url("/cuepost"),
            }
            yield SimulationState(tmp_path, document, receiver, environ)
