"""The npm packages of the client tests: installed at set-up, and never while tests run."""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.debian import INSTALL_SECONDS, install_packages
from tests.support.missing import missing_component

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "tests" / "clients" / "typescript"
MANIFESTS = ("package.json", "package-lock.json", ".npmrc")


def prepare() -> None:
    """Before any test, and not within the time of one."""
    if _ready().exists():
        return
    if not _has_npm():
        install_packages("nodejs", "npm")
    if not _has_npm():
        _complain("there is no Node.js with npm on this machine")
        return
    folder = _folder()
    folder.mkdir(parents=True, exist_ok=True)
    for name in MANIFESTS:
        shutil.copy(SOURCE / name, folder)
    ran = subprocess.run(
        ["npm", "ci"],
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS,
    )
    if ran.returncode == 0:
        _ready().touch()
    else:
        _complain(ran.stderr[-500:])


def node_packages() -> Path:
    """The folder `node_modules`; without it the test is not to be had."""
    if not (_has_npm() and _ready().exists()):
        missing_component("no Node.js with the packages of tests/clients: run `make clients`")
    return _folder() / "node_modules"


def _has_npm() -> bool:
    return all(map(shutil.which, ("node", "npm")))


def _folder() -> Path:
    """Named after what is pinned, so that a new lock means a new folder."""
    pinned = b"".join((SOURCE / name).read_bytes() for name in MANIFESTS)
    return ROOT / ".cache" / f"clients-{hashlib.sha256(pinned).hexdigest()[:12]}"


def _ready() -> Path:
    return _folder() / "node_modules" / ".ready"


def _complain(reason: str) -> None:
    sys.stderr.write(f"The tests of generated clients lack their npm packages: {reason}\n")


if __name__ == "__main__":
    prepare()
