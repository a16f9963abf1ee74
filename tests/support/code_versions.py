"""Versions of cuepost beside the one in this checkout, each run by an interpreter of its own."""

import os
import shutil
import subprocess
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from cuepost.adapters.storage import schema
from tests.support.service_process import (
    PATIENCE_SECONDS,
    ServiceProcess,
    command,
    environment,
    run,
)

ROOT = Path(__file__).parents[2]
SOURCES = (Path("src"), Path("packages/receiver/src"))
MIGRATIONS = schema.MIGRATIONS.relative_to(ROOT)
MIGRATION = '''"""Written by a test."""

import sqlalchemy as sa
from alembic import op

from cuepost.adapters.storage.migrations.concurrent_index import create_index_concurrently

revision = "{revision}"
down_revision = "{before}"
branch_labels = None
depends_on = None
oldest_code = "{oldest_code}"


def upgrade() -> None:
    {upgrade}
'''


@dataclass(frozen=True, slots=True)
class CodeVersion:
    """`root` is a checkout, or what of it is needed to run."""

    root: Path

    def start(self, settings: Mapping[str, str], half: str) -> ServiceProcess:
        if self.root == ROOT:
            return ServiceProcess(settings, half)
        log = self.root / f"{half}-{len(list(self.root.iterdir()))}.log"
        return ServiceProcess.of_command(command(half), self._environment(settings), half, log)

    def run(
        self, settings: Mapping[str, str], *arguments: str
    ) -> "subprocess.CompletedProcess[str]":
        if self.root == ROOT:
            return run(settings, *arguments)
        return subprocess.run(
            command(*arguments),
            env=self._environment(settings),
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )

    def _environment(self, settings: Mapping[str, str]) -> dict[str, str]:
        path = os.pathsep.join(str(self.root / source) for source in SOURCES)
        return environment(settings) | {"PYTHONPATH": path}


PRESENT = CodeVersion(ROOT)


def next_version(folder: Path, *upgrades: str, oldest_code: str | None = None) -> CodeVersion:
    """This one with further migrations; this one can run on them if no `oldest_code` is named."""
    for source in SOURCES:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / source, folder / source, ignore=ignored)
    add_migrations(folder / MIGRATIONS, *upgrades, oldest_code=oldest_code)
    return CodeVersion(folder)


def add_migrations(migrations: Path, *upgrades: str, oldest_code: str | None = None) -> list[str]:
    """The revisions of those that were added; `oldest_code` is that of the last one."""
    present = before = schema.revisions()[-1]
    added: list[str] = []
    for number, upgrade in enumerate(upgrades, start=9001):
        revision = str(number)
        oldest = oldest_code if oldest_code and len(added) == len(upgrades) - 1 else present
        text = MIGRATION.format(
            revision=revision, before=before, upgrade=upgrade, oldest_code=oldest
        )
        (migrations / "versions" / f"{revision}_added.py").write_text(text)
        before = revision
        added.append(revision)
    return added


def last_release(folder: Path) -> CodeVersion | None:
    """The newest tag that HEAD descends from; None where there is none, or no repository."""
    tag = _git("describe", "--tags", "--abbrev=0", "--match", "v[0-9]*")
    if tag is None:
        return None
    packed = _git("archive", "--format=tar", tag.decode().strip(), *map(str, SOURCES))
    assert packed is not None, f"{tag!r} has no sources"
    with tarfile.open(fileobj=BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    return CodeVersion(folder)


def _git(*arguments: str) -> bytes | None:
    ran = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, check=False)
    return ran.stdout if ran.returncode == 0 else None
