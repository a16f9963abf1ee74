"""`pip install` into an empty environment, for every Python on this machine.

It fetches packages from an index and takes minutes, so that only `make proof` does it
(`CUEPOST_TEST_INSTALL=all`).
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.service_process import ServiceProcess, default_environment, free_port

ROOT = Path(__file__).parents[2]
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
IS_ASKED_FOR = os.environ.get("CUEPOST_TEST_INSTALL") == "all"
WHAT = ("checkout", "wheel")


def interpreters() -> Iterator[tuple[str, str]]:
    """From PATH, and those that pyenv keeps beside one another."""
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for version in VERSIONS:
        found = [str(each) for each in sorted(kept.glob(f"{version}.*/bin/python"))]
        for candidate in (*found, shutil.which(f"python{version}")):
            if candidate and _works(candidate, version):
                yield version, candidate
                break


def _works(python: str, version: str) -> bool:
    program = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
    ran = subprocess.run([python, "-c", program], capture_output=True, text=True, check=False)
    return ran.stdout == f"{version}\n"


@pytest.mark.skipif(not IS_ASKED_FOR, reason="long: make proof, or CUEPOST_TEST_INSTALL=all")
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("what", WHAT)
def test_one_line_installs_a_service_that_serves(what: str, tmp_path: Path) -> None:
    pythons = dict(interpreters())
    assert pythons, "no Python from 3.11 on"
    for version, python in pythons.items():
        place = tmp_path / version
        subprocess.run([python, "-m", "venv", place / "venv"], check=True)
        pip = place / "venv" / "bin" / "pip"
        source = ROOT if what == "checkout" else _wheel(pip, place)
        subprocess.run([pip, "install", "--quiet", source], check=True)
        _serves(place)


def _wheel(pip: Path, place: Path) -> Path:
    build: list[str | Path] = [
        pip,
        "wheel",
        "--quiet",
        "--no-deps",
        "--wheel-dir",
        place / "dist",
        ROOT,
    ]
    subprocess.run(build, check=True)
    [made] = (place / "dist").iterdir()
    return made


def _serves(place: Path) -> None:
    port = free_port()
    settings = {"DATA_DIR": str(place / "data"), "PORT": str(port)}
    command = [str(place / "venv" / "bin" / "cuepost"), "serve"]
    with ServiceProcess.of_command(
        command, default_environment(settings), "serve", place / "log"
    ) as service:
        assert f"http://127.0.0.1:{port}/settings" in service.greeting
        assert "pip install 'cuepost[mcp]'" in service.greeting
        assert service.stop().code == 0
