"""Programs that check the operator's kit: from PATH, or unpacked from Debian's packages.

Packages are fetched and unpacked into `.cache`, not installed: nothing is started, and no one has
to be root. That happens at set-up (`make tools`), and never while tests run.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.support.missing import missing_component

ROOT = Path(__file__).parents[2]
UNPACKED = ROOT / ".cache" / "debian"
FETCH_SECONDS = 300
PACKAGES = {
    "nginx": ("nginx",),
    "promtool": ("prometheus",),
    "logrotate": ("logrotate", "libpopt0"),
    "pgbouncer": ("pgbouncer", "libc-ares2", "libevent-2.1-7"),
}


@dataclass(frozen=True, slots=True)
class Program:
    path: Path

    def run(
        self, *arguments: str | Path, cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.path, *arguments],
            env=self.environ,
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    @property
    def environ(self) -> dict[str, str]:
        libraries = ":".join(str(each) for each in UNPACKED.glob("usr/lib/*-linux-gnu"))
        return os.environ | ({"LD_LIBRARY_PATH": libraries} if libraries else {})


def program(name: str) -> Program:
    """Without it the test is not to be had."""
    found = _at_hand(name)
    if found is None:
        missing_component(f"no {name}: run `make tools`, or install it")
    return Program(found)


def prepare() -> None:
    missing = [name for name in PACKAGES if _at_hand(name) is None]
    for name in missing:
        try:
            _unpack(*PACKAGES[name])
        except (OSError, subprocess.SubprocessError) as error:
            sys.stderr.write(f"{name} is not to be had: {error}\n")


def _at_hand(name: str) -> Path | None:
    places = [os.environ.get("PATH", ""), "/usr/sbin", "/sbin"]
    places += [str(UNPACKED / folder) for folder in ("usr/bin", "usr/sbin", "sbin")]
    found = shutil.which(name, path=os.pathsep.join(places))
    return Path(found) if found else None


def _unpack(*packages: str) -> None:
    UNPACKED.mkdir(parents=True, exist_ok=True)
    _run("apt-get", "download", *packages)
    for archive in UNPACKED.glob("*.deb"):
        _run("dpkg-deb", "-x", archive.name, ".")
        archive.unlink()


def _run(*command: str) -> None:
    subprocess.run(command, cwd=UNPACKED, check=True, capture_output=True, timeout=FETCH_SECONDS)


if __name__ == "__main__":
    prepare()
