"""Where the peers are installed, and in which versions."""

import json
import os
import subprocess
from pathlib import Path

from tests.support.node_packages import NodePackages

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".cache" / "peers" / "bin" / "python"
PACKAGES = ("aiohttp", "arq", "celery", "httpx", "huey", "procrastinate", "redis", "requests")
BULLMQ = NodePackages(
    ROOT / "benchmarks" / "peers" / "bullmq", "bullmq", ("install", "--omit=optional")
)
TIMEOUT_SECONDS = 60
_ASKED = (
    "import importlib.metadata, json, sys;"
    "print(json.dumps({each: importlib.metadata.version(each) for each in sys.argv[1:]}))"
)


def environment(**chosen: str) -> dict[str, str]:
    """The environment variables of a peer's process."""
    return os.environ | {"PYTHONPATH": str(ROOT), "NODE_PATH": str(BULLMQ.modules), **chosen}


def peer_versions() -> dict[str, str]:
    return (_python_versions() if PYTHON.exists() else {}) | (
        _node_versions() if BULLMQ.are_ready else {}
    )


def _node_versions() -> dict[str, str]:
    manifest = json.loads((BULLMQ.source / "package.json").read_text(encoding="utf-8"))
    reported = subprocess.run(
        ["node", "--version"], capture_output=True, text=True, check=True, timeout=TIMEOUT_SECONDS
    )
    return {"Node.js": reported.stdout.strip().removeprefix("v"), **manifest["dependencies"]}


def _python_versions() -> dict[str, str]:
    reported = subprocess.run(
        [PYTHON, "-c", _ASKED, *PACKAGES],
        capture_output=True,
        text=True,
        check=True,
        timeout=TIMEOUT_SECONDS,
    )
    found: dict[str, str] = json.loads(reported.stdout)
    return found
