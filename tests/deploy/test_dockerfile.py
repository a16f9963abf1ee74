"""The steps of the Dockerfile, run in a plain folder by an ordinary user.

They fetch packages and take a minute, so that only `make proof` runs them
(`CUEPOST_TEST_INSTALL=all`).
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.missing import missing_component
from tests.support.service_process import free_port

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "deploy" / "docker" / "Dockerfile"
IS_ASKED_FOR = os.environ.get("CUEPOST_TEST_INSTALL") == "all"
NOBODY = 65_534
INSTALLED = "/opt/cuepost"


def instructions() -> Iterator[tuple[str, str]]:
    text = re.sub(r"\\\n\s*", "", DOCKERFILE.read_text())
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, _, rest = line.partition(" ")
            yield name, rest


def build_steps() -> Iterator[tuple[str, str]]:
    """Of the first stage; the second only copies what it has made."""
    stages = 0
    for name, rest in instructions():
        stages += name == "FROM"
        if stages == 1 and name in {"COPY", "RUN"}:
            yield name, rest


def test_the_second_stage_copies_what_the_first_has_made() -> None:
    copied = [rest for name, rest in instructions() if name == "COPY" and "--from" in rest]
    assert copied == [f"--from=build {INSTALLED} {INSTALLED}"]


def test_everything_that_is_copied_is_in_the_context() -> None:
    ignored = (DOCKERFILE.parent / "Dockerfile.dockerignore").read_text().splitlines()
    allowed = {line[1:] for line in ignored if line.startswith("!")}
    for name, rest in instructions():
        if name == "COPY" and "--from" not in rest:
            *sources, _ = rest.split()
            assert set(sources) <= allowed
            assert all((ROOT / source).exists() for source in sources)


class Builder:
    """A folder that belongs to an ordinary user, in the place of the image."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.user: dict[str, Any] = {}
        if os.geteuid() == 0:
            self.user = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        self.environ = {
            name: value for name, value in os.environ.items() if not name.startswith("CUEPOST_")
        } | {"HOME": str(folder), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}

    def run(self, *command: str, **more: Any) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            command, text=True, check=True, timeout=1_200, cwd=self.folder / "build",
            env=self.environ | more, capture_output=True, **self.user,
        )  # fmt: skip

    def own(self) -> None:
        if os.geteuid() == 0:
            for path in (self.folder, *self.folder.rglob("*")):
                os.chown(path, NOBODY, NOBODY)

    def python(self) -> str:
        """One that this user may run."""
        for candidate in ("/usr/bin/python3", "/usr/local/bin/python3", sys.executable):
            try:
                version = "import sys, ensurepip; sys.exit(sys.version_info < (3, 11))"
                self.run(candidate, "-c", version)
            except (OSError, subprocess.CalledProcessError):
                continue
            return candidate
        return missing_component("no Python that an ordinary user may run")

    def copy(self, rest: str) -> None:
        *sources, target = rest.split()
        place = self.folder / "build" / target
        for source in sources:
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, place, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                place.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / source, place)


@pytest.mark.skipif(not IS_ASKED_FOR, reason="long: make proof, or CUEPOST_TEST_INSTALL=all")
@pytest.mark.timeout(1800)
def test_the_steps_make_a_service_that_runs_for_an_ordinary_user() -> None:
    folder = Path("/var/tmp") / f"cuepost-image-{os.getpid()}"
    (folder / "build").mkdir(parents=True)
    try:
        builder = Builder(folder)
        builder.own()
        python = builder.python()
        for name, rest in build_steps():
            if name == "COPY":
                builder.copy(rest)
                builder.own()
                continue
            script = rest.replace(INSTALLED, f"{folder}{INSTALLED}")
            script = re.sub(r"^python ", f"{shlex.quote(python)} ", script)
            builder.run("sh", "-ec", script)
        command = f"{folder}{INSTALLED}/bin/cuepost"
        assert builder.run(command, "--version").stdout.startswith("cuepost ")
        settings = {"CUEPOST_DATA_DIR": f"{folder}/data", "CUEPOST_PORT": str(free_port())}
        reported = builder.run(command, "setup", "--json", **settings).stdout
        assert '"apiKey"' in reported
        assert "Every step succeeded" in builder.run(command, "demo").stdout
    finally:
        shutil.rmtree(folder)
