"""The bill of materials names what set-up installs, and the audit tells silence from safety."""

import importlib
import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SKIPPED = "audit: SKIPPED, there is no database of advisories here"
PINNED = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==(\S+)", re.MULTILINE)


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    name: str = request.param
    monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module(name)


@pytest.mark.parametrize("script", ["sbom"], indirect=True)
def test_the_bill_of_materials_has_every_pinned_package_with_its_hashes(script: ModuleType) -> None:
    made = script.document()
    text = (ROOT / "requirements" / "runtime.txt").read_text()
    assert [(each["name"], each["version"]) for each in made["components"]] == PINNED.findall(text)
    listed = [each["content"] for one in made["components"] for each in one["hashes"]]
    assert listed == re.findall(r"sha256:([0-9a-f]{64})", text)
    assert (made["bomFormat"], made["specVersion"]) == ("CycloneDX", "1.5")
    references = {each["bom-ref"] for each in made["components"]}
    assert set(made["dependencies"][0]["dependsOn"]) == references
    assert len(references) == len(made["components"])


FINE = {"name": "click", "version": "8.2", "vulns": []}
BAD = {"name": "mcp", "version": "2.3", "vulns": [{"id": "PYSEC-1", "fix_versions": ["2.4"]}]}
UNKNOWN = {"name": "uvloop", "skip_reason": "Dependency not found on PyPI"}


@pytest.mark.parametrize("script", ["audit"], indirect=True)
@pytest.mark.parametrize(
    ("packages", "code", "words"),
    [
        ([FINE], 0, "audit: no advisory for 1 packages"),
        ([FINE, BAD], 1, "mcp 2.3: PYSEC-1, fixed in ['2.4']"),
        ([FINE, UNKNOWN], 1, "uvloop: could not be looked up"),
        ([UNKNOWN], 0, f"{SKIPPED}: it knows none of the packages"),
    ],
    ids=["fine", "advisory", "some unknown", "all unknown"],
)
def test_silence_of_the_database_is_told_from_safety(
    script: ModuleType, packages: list[dict[str, Any]], code: int, words: str
) -> None:
    assert script.verdict(json.dumps({"dependencies": packages}), "") == (code, words)


@pytest.mark.parametrize("script", ["audit"], indirect=True)
def test_a_database_out_of_reach_is_said(script: ModuleType) -> None:
    assert script.verdict("", "Traceback\nConnectionError: refused\n") == (
        0,
        f"{SKIPPED}: ConnectionError: refused",
    )
