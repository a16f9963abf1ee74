"""The packages that requirements/runtime.txt pins, for the other scripts."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

RUNTIME = Path(__file__).parents[1] / "requirements" / "runtime.txt"
_PACKAGE = re.compile(
    r"(?P<name>[A-Za-z0-9._-]+)(?:\[[^]]*\])?==(?P<version>[^\s;\\]+)(?P<marker>[^\\]*)"
)


@dataclass(frozen=True, slots=True)
class Pinned:
    name: str
    version: str
    marker: str
    hashes: tuple[str, ...]


def pinned_packages(file: Path = RUNTIME) -> Iterator[Pinned]:
    lines = file.read_text().replace("\\\n", " ").splitlines()
    for line in lines:
        found = _PACKAGE.match(line)
        if found is not None:
            marker = found["marker"].partition("--hash")[0].strip().removeprefix(";").strip()
            hashes = tuple(re.findall(r"--hash=sha256:([0-9a-f]{64})", line))
            yield Pinned(found["name"], found["version"], marker, hashes)
