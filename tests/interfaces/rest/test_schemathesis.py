"""schemathesis, all checks and all phases, over a running service."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from cuepost.interfaces.rest.table import OPERATIONS
from tests.support.service_process import ServiceProcess, environment, free_port, run

FEW, SEED_OF_FEW = "3", "1"
EXAMPLES = os.environ.get("CUEPOST_TEST_SCHEMATHESIS_EXAMPLES", FEW)
# With few examples they are the same each time, so that a change is not refused for what an older
# one did; `make proof` draws many new ones.
SEED = [] if EXAMPLES != FEW else [f"--seed={SEED_OF_FEW}"]
LIMIT_SECONDS = 240 if EXAMPLES == FEW else 6 * 3_600
CONFIG = Path(__file__).with_name("schemathesis.toml")


@dataclass(frozen=True)
class Running:
    url: str
    account_key: str
    service_key: str
    operator_key: str


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Running]:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    settings = {
        "DATA_DIR": str(tmp_path / "data"),
        "PORT": str(port),
        "BASE_URL": url,
        "RATE_LIMIT": "1000000",
        "MAX_ENDPOINTS_PER_ACCOUNT": "1000",
    }
    keys = json.loads(run(settings, "setup", "--json").stdout)
    with ServiceProcess(settings):
        made = run(settings, "keys", "create", "--operator", "--json").stdout
        yield Running(url, keys["apiKey"], keys["serviceKey"], json.loads(made)["token"])


@pytest.mark.timeout(LIMIT_SECONDS)
def test_schemathesis_finds_nothing(service: Running, tmp_path: Path) -> None:
    keys = {
        "ACCOUNT_KEY": service.account_key,
        "SERVICE_KEY": service.service_key,
        "OPERATOR_KEY": service.operator_key,
    }
    found_in = [str(CONFIG.parent), os.environ.get("PYTHONPATH", "")]
    found = subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli", f"--config-file={CONFIG}", "run"),
            f"{service.url}/openapi.json",
            *("--checks=all", f"--max-examples={EXAMPLES}", "--no-color", "--warnings=off"),
            *SEED,
            # Far more than any call takes, also where several tests share a core.
            "--max-response-time=60",
        ],
        cwd=tmp_path,
        env=environment({}) | keys | {"PYTHONPATH": os.pathsep.join(found_in)},
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr
    assert f"{len(OPERATIONS)} selected / {len(OPERATIONS)} total" in found.stdout
