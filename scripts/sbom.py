"""Writes a software bill of materials (CycloneDX 1.5, JSON) of cuepost's runtime packages."""

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

from pinned import RUNTIME, Pinned, pinned_packages

PROJECT = RUNTIME.parents[1] / "pyproject.toml"


def document() -> dict[str, Any]:
    project = tomllib.loads(PROJECT.read_text())["project"]
    packages = list(pinned_packages())
    own = _reference(project["name"], project["version"])
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": project["name"],
                "version": project["version"],
                "purl": own,
                "licenses": [{"license": {"id": project["license"]}}],
            }
        },
        "components": [_component(each) for each in packages],
        "dependencies": [
            {"ref": own, "dependsOn": [_reference(each.name, each.version) for each in packages]}
        ],
    }


def _component(package: Pinned) -> dict[str, Any]:
    reference = _reference(package.name, package.version)
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": reference,
        "name": package.name,
        "version": package.version,
        "purl": reference,
        "scope": "optional" if package.marker else "required",
        # One for each file that pip accepts: the source and a wheel for each platform.
        "hashes": [{"alg": "SHA-256", "content": each} for each in package.hashes],
    }
    if package.marker:
        component["properties"] = [{"name": "cuepost:marker", "value": package.marker}]
    return component


def _reference(name: str, version: str) -> str:
    return f"pkg:pypi/{name.lower().replace('_', '-')}@{version}"


def main() -> None:
    file = Path(sys.argv[1])
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(document(), indent=2) + "\n")
    print(f"{file}: {len(document()['components'])} packages")


if __name__ == "__main__":
    main()
