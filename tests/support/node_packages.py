"""Pinned npm packages: installed at set-up, and never while tests or benchmarks run."""

import hashlib
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.support.debian import INSTALL_SECONDS, install_packages
from tests.support.missing import missing_component

ROOT = Path(__file__).parents[2]
MANIFESTS = ("package.json", "package-lock.json", ".npmrc")


@dataclass(frozen=True, slots=True)
class NodePackages:
    """`source` has the manifests, `name` is that of the folder below `.cache`.

    `install` is what npm is told: `ci` wants every optional package of every platform in the lock.
    """

    source: Path
    name: str
    install: tuple[str, ...] = ("ci",)

    @property
    def modules(self) -> Path:
        return self._folder / "node_modules"

    @property
    def are_ready(self) -> bool:
        return _has_npm() and self._mark.exists()

    def prepare(self) -> None:
        """Before any test, and not within the time of one."""
        if self._mark.exists():
            return
        if not _has_npm():
            install_packages("nodejs", "npm")
        if not _has_npm():
            self._complain("there is no Node.js with npm on this machine")
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        for name in MANIFESTS:
            shutil.copy(self.source / name, self._folder)
        ran = subprocess.run(
            ["npm", *self.install],
            cwd=self._folder,
            check=False,
            capture_output=True,
            text=True,
            timeout=INSTALL_SECONDS,
        )
        if ran.returncode == 0:
            self._mark.touch()
        else:
            self._complain(ran.stderr[-500:])

    @property
    def _folder(self) -> Path:
        """Named after what is pinned, so that a new lock means a new folder."""
        pinned = b"".join((self.source / name).read_bytes() for name in MANIFESTS)
        return ROOT / ".cache" / f"{self.name}-{hashlib.sha256(pinned).hexdigest()[:12]}"

    @property
    def _mark(self) -> Path:
        return self.modules / ".ready"

    def _complain(self, reason: str) -> None:
        sys.stderr.write(f"The npm packages of {self.name} could not be installed: {reason}\n")


CLIENTS = NodePackages(ROOT / "tests" / "clients" / "typescript", "clients")
OPENID = NodePackages(ROOT / "tests" / "openid" / "provider", "openid")


def node_packages() -> Path:
    """Of the tests of generated clients; without them the test is not to be had."""
    if not CLIENTS.are_ready:
        missing_component("no Node.js with the packages of tests/clients: run `make clients`")
    return CLIENTS.modules


def openid_packages() -> Path:
    """Of the OpenID provider that the tests sign in with."""
    if not OPENID.are_ready:
        missing_component("no Node.js with the packages of tests/openid: run `make clients`")
    return OPENID.modules


def _has_npm() -> bool:
    return all(map(shutil.which, ("node", "npm")))


if __name__ == "__main__":
    for each in (CLIENTS, OPENID):
        each.prepare()
