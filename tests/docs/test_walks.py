"""Pages that lead through something, followed literally: their commands, as they are printed."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cuepost.domain.signing import SigningSecret, signature
from tests.e2e.test_examples import EXAMPLES, installed
from tests.support.operator_tools import program
from tests.support.postgres import fresh_database_sync
from tests.support.service_process import environment, free_port

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
BIN = Path(sys.executable).parent
IS_LONG = os.environ.get("CUEPOST_TEST_INSTALL") == "all"


def commands_of(page: str) -> list[str]:
    return re.findall(r"^```sh\n(.*?)^```", (DOCS / page).read_text(), re.DOTALL | re.MULTILINE)


def walked(
    blocks: list[str], folder: Path, ports: dict[str, int], **environ: str
) -> "subprocess.CompletedProcess[str]":
    """Other ports than those of the page, which may be taken; everything else as it is printed."""
    script = "\n".join(blocks)
    for printed, free in ports.items():
        assert printed in script, printed
        script = re.sub(rf"\b{printed}\b", str(free), script)
    # Whatever was started in the background ends with the shell.
    ended = "trap 'kill $(jobs -p) 2>/dev/null || true; wait || true' EXIT\n"
    return subprocess.run(
        ["bash", "-c", f"set -eu\n{ended}{script}"],
        cwd=folder,
        env=environment({}) | {"HOME": str(folder)} | environ,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_the_first_page_leads_to_a_green_webhook(tmp_path: Path) -> None:
    install, *rest = commands_of("get-started.md")
    ports = {"8000": free_port(), "9000": free_port()}
    service = {
        "CUEPOST_PORT": str(ports["8000"]),
        "CUEPOST_URL": f"http://127.0.0.1:{ports['8000']}",
        "PATH": f"{BIN}:{os.environ['PATH']}",
    }
    done = walked(rest, tmp_path, ports, **service)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^green: project\.completed [0-9a-f-]{36}$", done.stdout, re.MULTILINE)
    assert "0 failures" in done.stdout
    assert "pip install --quiet . ./packages/receiver" in install


@pytest.mark.skipif(not IS_LONG, reason="long: make proof, or CUEPOST_TEST_INSTALL=all")
@pytest.mark.timeout(900)
def test_the_first_page_begins_with_nothing_but_python(tmp_path: Path) -> None:
    """Installs from an index, into an empty environment."""
    ports = {"8000": free_port(), "9000": free_port()}
    blocks = [f"cd {ROOT}\n", *commands_of("get-started.md")]
    service = {
        "CUEPOST_PORT": str(ports["8000"]),
        "CUEPOST_URL": f"http://127.0.0.1:{ports['8000']}",
    }
    done = walked(blocks, tmp_path, ports, **service)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "green: project.completed " in done.stdout


def test_postgresql_with_two_workers_behind_nginx(tmp_path: Path, postgres_url: str) -> None:
    nginx = program("nginx")
    ports = {printed: free_port() for printed in ("8000", "8010", "8001", "8011", "8080")}
    commands = tmp_path / "bin"
    commands.mkdir()
    (commands / "nginx").symlink_to(nginx.path)
    with fresh_database_sync(postgres_url) as url:
        done = walked(
            [*commands_of("how-to/postgresql.md"), 'kill "$(cat nginx.pid)"'],
            tmp_path,
            ports,
            DATABASE=url,
            CHECKOUT=str(ROOT),
            PATH=f"{BIN}:{commands}:{os.environ['PATH']}",
            LD_LIBRARY_PATH=nginx.environ.get("LD_LIBRARY_PATH", ""),
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"The service answers at http://127.0.0.1:{ports['8080']}." in done.stdout
    assert done.stdout.count('"status":"ready"') == 4
    assert done.stdout.count('"dispatcher":"ok"') == 2


BODY = b'{"type":"project.completed"}'


def verified(command: list[str | Path], body: bytes) -> "subprocess.CompletedProcess[str]":
    """With the signature of BODY, as the service makes it, and the time of now."""
    secret, now = SigningSecret(bytes(range(32))), int(time.time())
    return subprocess.run(
        command,
        input=body.decode(),
        env=os.environ
        | {
            "SECRET": secret.reveal(),
            "WEBHOOK_ID": "msg_1",
            "WEBHOOK_TIMESTAMP": str(now),
            "WEBHOOK_SIGNATURE": signature(secret, "msg_1", now, BODY),
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def python_program() -> list[str | Path]:
    return [sys.executable, DOCS / "tutorials" / "verify.py"]


def node_program() -> list[str | Path]:
    """Beside the packages of the Express example, the public library among them."""
    place = installed(EXAMPLES / "express") / "verify.mjs"
    shutil.copy(DOCS / "tutorials" / "verify.mjs", place)
    return ["node", place]


@pytest.mark.parametrize("program_of", [python_program, node_program])
def test_public_libraries_verify_what_the_service_signs(
    program_of: Callable[[], list[str | Path]],
) -> None:
    command = program_of()
    assert verified(command, BODY).stdout == "project.completed\n"
    assert verified(command, BODY + b" ").returncode != 0


def test_accounts_are_provisioned_as_the_page_says(tmp_path: Path) -> None:
    port = free_port()
    blocks = commands_of("how-to/provision-accounts.md")
    service = {"CUEPOST_PORT": str(port), "PATH": f"{BIN}:{os.environ['PATH']}"}
    done = walked(blocks, tmp_path, {"8000": port}, **service)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count('"externalId":"cust_42"') == 4
    assert '"state":"erasing"' in done.stdout
    assert '"token":"cpk_' in done.stdout
