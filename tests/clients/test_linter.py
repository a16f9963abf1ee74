"""The OpenAPI document in the eyes of Redocly's linter; redocly.yaml lists its exceptions."""

import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cuepost.domain.egress_policy import EgressPolicy
from cuepost.interfaces.rest.openapi.document import openapi_document
from cuepost.interfaces.rest.table import OPERATIONS
from tests.support.node_packages import node_packages

SOURCE = Path(__file__).parent / "typescript"
LINT_SECONDS = 120


def problems_of(document: dict[str, Any], folder: Path) -> list[str]:
    (folder / "node_modules").symlink_to(node_packages())
    program = folder / "lint.mjs"
    program.write_bytes((SOURCE / "lint.mjs").read_bytes())
    shown = folder / "openapi.json"
    shown.write_bytes(msgspec.json.encode(document))
    ran = subprocess.run(
        ["node", program, shown, SOURCE / "redocly.yaml"],
        capture_output=True,
        text=True,
        timeout=LINT_SECONDS,
        check=False,
    )
    assert ran.returncode == bool(ran.stdout), ran.stderr
    return ran.stdout.splitlines()


@pytest.fixture
def document() -> dict[str, Any]:
    return openapi_document(OPERATIONS, "https://cuepost.example.org", EgressPolicy())


def test_the_linter_finds_nothing(document: dict[str, Any], tmp_path: Path) -> None:
    assert problems_of(document, tmp_path) == []


def test_the_linter_finds_what_is_wrong(document: dict[str, Any], tmp_path: Path) -> None:
    del document["paths"]["/v1/milestones"]["post"]["security"]
    document["components"]["schemas"]["Stage"]["enum"] = 5
    found = [line.split()[:2] for line in problems_of(document, tmp_path)]
    assert ["error", "security-defined"] in found
    assert ["error", "struct"] in found
