"""Where the peers are installed, and which versions of them."""

import json
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".cache" / "peers" / "bin" / "python"
PACKAGES = ("aiohttp", "arq", "celery", "httpx", "huey", "procrastinate", "redis", "requests")
PATIENCE_SECONDS = 60
_ASKED = (
    "import importlib.metadata, json, sys;"
    "print(json.dumps({each: importlib.metadata.version(each) for each in sys.argv[1:]}))"
)


def installed() -> bool:
    return PYTHON.exists()


def environment(**chosen: str) -> dict[str, str]:
    """What a process of a peer gets to know."""
    return os.environ | {"PYTHONPATH": str(ROOT), **chosen}


def peer_versions() -> dict[str, str]:
    if not installed():
        return {}
    told = subprocess.run(
        [PYTHON, "-c", _ASKED, *PACKAGES],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_SECONDS,
    )
    found: dict[str, str] = json.loads(told.stdout)
    return found
