"""The fences around the layers hold, and each of them is seen to catch a violation."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
CONTRACTS: dict[str, dict[str, Any]] = {
    contract["id"]: contract for contract in PYPROJECT["tool"]["importlinter"]["contracts"]
}
KIT = ROOT / "packages/receiver/src"
TOOLS = Path(sys.executable).parent

# contracts that break, module that is planted, what it imports
VIOLATIONS = [
    ("layers", "domain/planted.py", "import cuepost.ports"),
    ("layers", "ports/planted.py", "import cuepost.application"),
    ("layers", "application/planted.py", "import cuepost.adapters"),
    ("layers", "adapters/planted.py", "import cuepost.application"),
    ("layers", "application/planted.py", "import cuepost.testing"),
    # Behind bootstrap stand the adapters and the other interfaces.
    ("layers strangers interfaces", "interfaces/rest/planted.py", "import cuepost.bootstrap"),
    ("layers", "unplanned_layer.py", ""),
    ("strangers", "interfaces/rest/planted.py", "import cuepost.adapters"),
    ("strangers", "engine/planted.py", "import cuepost.adapters"),
    ("interfaces", "interfaces/rest/planted.py", "import cuepost.interfaces.cli"),
    ("interfaces", "interfaces/planted.py", "import cuepost.interfaces.rest"),
    ("pure-domain", "domain/planted.py", "import time"),
    ("pure-domain", "domain/planted.py", "from os import path"),
    ("pure-domain", "domain/planted.py", "import msgspec"),
    ("sql", "bootstrap_planted", "import sqlalchemy"),
    ("sql", "adapters/planted.py", "import sqlite3"),
    ("sql", "application/planted.py", "from asyncpg import connect"),
    ("frameworks", "application/planted.py", "from starlette.requests import Request"),
    ("frameworks", "adapters/planted.py", "import click"),
    ("mcp", "interfaces/rest/planted.py", "from mcp.server import Server"),
    ("mcp", "interfaces/mcp/planted.py", "import mcp_types"),
    ("settings", "interfaces/rest/planted.py", "import cuepost.settings"),
    ("kit-apart", "../cuepost_receiver/planted.py", "import cuepost.domain.signing"),
    ("kit-pure", "../cuepost_receiver/planted.py", "import msgspec"),
    ("kit-pure", "../cuepost_receiver/inbox_planted.py", "import flask"),
    ("doctor-alone", "interfaces/rest/planted.py", "from cuepost_receiver.inbox import Inbox"),
    ("doctor-in-interfaces", "application/planted.py", "import cuepost_receiver.doctor"),
]


@pytest.fixture
def copied_tree(tmp_path: Path) -> Path:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=ignored)
    shutil.copytree(KIT / "cuepost_receiver", tmp_path / "src/cuepost_receiver", ignore=ignored)
    return tmp_path


def broken_contracts(tree: Path) -> set[str]:
    """The ids of the contracts that the linter finds broken in a tree."""
    path = os.pathsep.join(map(str, (tree / "src", tree / "packages/receiver/src")))
    run = subprocess.run(
        [TOOLS / "lint-imports", "--no-logo", "--no-cache"],
        cwd=tree,
        env=os.environ | {"PYTHONPATH": path, "COLUMNS": "300", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    verdicts = dict(re.findall(r"^(.+?) (KEPT|BROKEN)", run.stdout, re.MULTILINE))
    assert set(verdicts) == {contract["name"] for contract in CONTRACTS.values()}, run.stdout
    return {key for key, contract in CONTRACTS.items() if verdicts[contract["name"]] == "BROKEN"}


def refused_lines(tree: Path, module: str) -> set[str]:
    """The lines of a module that the banned-api rule refuses."""
    options = ("--no-cache", "--select=TID251", "--output-format=concise")
    run = subprocess.run(
        [TOOLS / "ruff", "check", *options, f"src/cuepost/{module}"],
        cwd=tree,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    lines = (tree / "src/cuepost" / module).read_text().splitlines()
    return {lines[int(n) - 1] for n in re.findall(r":(\d+):\d+: TID251", run.stdout)}


def plant(tree: Path, module: str, source: str) -> None:
    path = tree / "src/cuepost" / module
    if not path.parent.exists():
        path.parent.mkdir()
        (path.parent / "__init__.py").touch()
    path.write_text(f"{source}\n")


def append_to_bootstrap(tree: Path, source: str) -> None:
    bootstrap = tree / "src/cuepost/bootstrap"
    path = bootstrap / "__init__.py" if bootstrap.is_dir() else bootstrap.with_suffix(".py")
    path.write_text(f"{path.read_text()}\n{source}\n")


def test_every_contract_is_kept() -> None:
    assert broken_contracts(ROOT) == set()


@pytest.mark.parametrize(("contracts", "module", "source"), VIOLATIONS)
def test_a_violation_breaks_exactly_its_contracts(
    contracts: str, module: str, source: str, copied_tree: Path
) -> None:
    if module == "bootstrap_planted":
        append_to_bootstrap(copied_tree, source)
    else:
        plant(copied_tree, module, source)

    assert broken_contracts(copied_tree) == set(contracts.split())


def test_every_contract_was_seen_to_break() -> None:
    assert {contracts for contracts, _, _ in VIOLATIONS} >= set(CONTRACTS)


def test_the_domain_contract_names_every_third_party_that_the_product_installs() -> None:
    pinned = set(re.findall(r"^([\w.-]+)==", _runtime_requirements(), re.MULTILINE))
    importable = {
        package
        for package, distributions in packages_distributions().items()
        for distribution in distributions
        if _normal(distribution) in pinned and not package.startswith("_")
    }

    assert importable - set(CONTRACTS["pure-domain"]["forbidden_modules"]) == set()


def _runtime_requirements() -> str:
    return (ROOT / "requirements/runtime.txt").read_text()


def _normal(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()


BANNED = sorted(PYPROJECT["tool"]["ruff"]["lint"]["flake8-tidy-imports"]["banned-api"])


def _uses(api: str) -> tuple[str, str]:
    """An import and a use of a banned name, as two lines."""
    module = api.partition(".")[0]
    return f"import {module}", f"{api}()" if "." in api else f"{api}.choice([])"


@pytest.mark.parametrize("api", BANNED)
def test_ambient_time_chance_and_tasks_are_refused_everywhere_else(
    api: str, copied_tree: Path
) -> None:
    plant(copied_tree, "engine/planted.py", "\n".join(_uses(api)))

    assert refused_lines(copied_tree, "engine/planted.py")


@pytest.mark.parametrize("module", ["adapters/system_clock.py", "testing.py"])
def test_the_real_clock_and_the_test_kit_may_use_them(module: str, copied_tree: Path) -> None:
    plant(copied_tree, module, "\n".join(line for api in BANNED for line in _uses(api)))

    assert refused_lines(copied_tree, module) == set()
