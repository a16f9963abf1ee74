"""Starts cuepost on a temporary store and the host product beside it: `python run.py`."""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

HERE = Path(__file__).parent
PATIENCE_SECONDS = 60


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def settings(folder: Path, port: int, host_port: int) -> dict[str, str]:
    """`localhost` and 127.0.0.1 are two sites for a browser, as two products would be."""
    own = {
        "DATA_DIR": str(folder / "cuepost"),
        "PORT": str(port),
        "PORTAL_ORIGINS": f"http://localhost:{host_port}",
        "FRAME_ANCESTORS": f"http://localhost:{host_port}",
        "RECEIVER_NETWORKS": "127.0.0.0/8",
        "RECEIVER_PORTS": str(host_port),
        "RECEIVER_HTTP": "true",
        "LOG_LEVEL": "warning",
    }
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CUEPOST_")}
    return kept | {f"CUEPOST_{name}": value for name, value in own.items()}


def new_key(environ: dict[str, str], kind: str) -> str:
    command = [sys.executable, "-m", "cuepost", "keys", "create", kind, "--json"]
    made = subprocess.run(command, env=environ, check=True, capture_output=True, text=True)
    return str(json.loads(made.stdout)["token"])


@contextmanager
def running(command: list[str], environ: dict[str, str], ready: str) -> Iterator[None]:
    process = subprocess.Popen(command, env=environ, cwd=HERE, stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not answers(ready):
            if process.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"{command[2]} did not start.")
            time.sleep(0.1)
        yield
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)


def answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=2):
            return True
    except (URLError, OSError):
        return False


def main() -> None:
    port, host_port = free_port(), free_port()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environ = settings(folder, port, host_port)
        host_url = f"http://localhost:{host_port}"
        serve = [sys.executable, "-m", "cuepost", "serve"]
        with running(serve, environ, f"http://127.0.0.1:{port}/readyz"):
            for_host = environ | {
                "HOST_URL": host_url,
                "RECEIVER_URL": f"http://127.0.0.1:{host_port}/hooks",
                "RECEIVER_INBOX": str(folder / "inbox.sqlite3"),
                "CUEPOST_URL": f"http://127.0.0.1:{port}",
                "CUEPOST_OPERATOR_KEY": new_key(environ, "--operator"),
                "CUEPOST_SERVICE_KEY": new_key(environ, "--service"),
            }
            options = ["--port", str(host_port), "--log-level", "warning"]
            host = [sys.executable, "-m", "uvicorn", "host:app", *options]
            with running(host, for_host, f"http://127.0.0.1:{host_port}/"):
                print(f"Open {host_url} in a browser; Ctrl+C ends both.", flush=True)
                try:
                    while True:
                        time.sleep(3600)
                except KeyboardInterrupt:
                    pass


if __name__ == "__main__":
    main()
