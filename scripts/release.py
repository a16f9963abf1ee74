"""Builds both distributions into dist/, checks them as a new user would, and writes the notes.

The wheels are built from the sdists, so that an incomplete sdist is found here. The service is
installed into an empty environment, served, and put through its demo.
"""

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import urllib.error
import urllib.request
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECTS = (ROOT, ROOT / "packages" / "receiver")
DIST = ROOT / "dist"
SBOM = ROOT / "scripts" / "sbom.py"


def version_of(project: Path) -> str:
    text = (project / "pyproject.toml").read_text()
    return str(tomllib.loads(text)["project"]["version"])


def notes_of(changelog: str, version: str) -> str:
    """The section of the version, or that of unreleased changes if there is none."""
    for heading in (f"## {version}", "## Unreleased"):
        _, found, rest = changelog.partition(f"{heading}\n")
        if found:
            section = rest.partition("\n## ")[0].strip()
            return f"# cuepost {version}\n\n{section}\n"
    raise SystemExit(f"CHANGELOG.md has no section for {version}.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=sys.executable, help="the interpreter to install for")
    python = parser.parse_args().python
    versions = {version_of(project) for project in PROJECTS}
    if len(versions) != 1:
        raise SystemExit(f"The distributions have different versions: {sorted(versions)}.")
    [version] = versions
    shutil.rmtree(DIST, ignore_errors=True)
    for project in PROJECTS:
        build(project)
    run([sys.executable, "-m", "twine", "check", "--strict", *map(str, sorted(DIST.iterdir()))])
    with tempfile.TemporaryDirectory() as folder:
        check_installed(Path(folder), python, version)
    write_notes(version)
    for made in sorted(DIST.iterdir()):
        print(f"dist/{made.name}  {made.stat().st_size:,} bytes")


def build(project: Path) -> None:
    hatchling = [sys.executable, "-m", "hatchling", "build", "--directory", str(DIST)]
    before = set(DIST.glob("*")) if DIST.exists() else set()
    run([*hatchling, "--target", "sdist"], cwd=project)
    [sdist] = set(DIST.glob("*.tar.gz")) - before
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(sdist) as archive:
            archive.extractall(folder, filter="data")
        [unpacked] = Path(folder).iterdir()
        run([*hatchling, "--target", "wheel"], cwd=unpacked)


def check_installed(folder: Path, python: str, version: str) -> None:
    """Installs only the wheel into an empty environment, starts a service, and runs the demo."""
    place = folder / "venv"
    if Path(python).resolve() == Path(sys.executable).resolve():
        venv.create(place, with_pip=True)
    else:
        run([python, "-m", "venv", str(place)])
    wheel = next(DIST.glob(f"cuepost-{version}-*.whl"))
    run([str(place / "bin" / "pip"), "install", "--quiet", str(wheel)])
    command = str(place / "bin" / "cuepost")
    said = subprocess.run([command, "--version"], check=True, capture_output=True, text=True)
    if said.stdout != f"cuepost {version}\n":
        raise SystemExit(f"The wheel installs {said.stdout!r}.")
    serve_once(command, folder)
    run([command, "demo"], cwd=folder)


def serve_once(command: str, folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = {"CUEPOST_DATA_DIR": str(folder / "data"), "CUEPOST_PORT": str(port)}
    with subprocess.Popen([command, "serve"], env=os.environ | settings, cwd=folder) as service:
        try:
            wait_until_ready(service, port)
        finally:
            service.terminate()
        if service.wait(30) != 0:
            raise SystemExit(f"The service ended with {service.returncode}.")


def wait_until_ready(service: "subprocess.Popen[bytes]", port: int) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while service.poll() is None:
        try:
            with opener.open(f"http://127.0.0.1:{port}/readyz", timeout=10) as answer:
                assert json.load(answer)["status"] == "ready"
                return
        except urllib.error.URLError as error:
            if not isinstance(error.reason, ConnectionRefusedError):
                raise
            time.sleep(0.1)
    raise SystemExit("The service did not start.")


def write_notes(version: str) -> None:
    notes = notes_of((ROOT / "CHANGELOG.md").read_text(), version)
    (DIST / f"release-notes-{version}.md").write_text(notes)
    run([sys.executable, str(SBOM), str(DIST / f"cuepost-{version}.cdx.json")])


def run(command: list[str], cwd: Path = ROOT) -> None:
    print("+", " ".join(command), flush=True)
    subprocess.run(command, check=True, cwd=cwd)


if __name__ == "__main__":
    main()
