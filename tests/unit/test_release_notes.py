"""The notes of a release are its section of the changelog."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = (
    "import sys; sys.path.insert(0, 'scripts'); from release import notes_of; "
    "print(notes_of(sys.stdin.read(), '0.3.0'), end='')"
)
OLD = "\n## 0.2.0\n\n- old\n"


def notes(changelog: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        input=changelog,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("heading", ["0.3.0", "Unreleased"])
def test_the_notes_are_the_section_of_the_version_or_what_is_unreleased(heading: str) -> None:
    found = notes(f"# Changelog\n\n## {heading}\n\n- new\n{OLD}")
    assert found.stdout == "# cuepost 0.3.0\n\n- new\n"


def test_a_version_without_a_section_is_not_released() -> None:
    found = notes(f"# Changelog\n{OLD}")
    assert (found.returncode, found.stderr) == (1, "CHANGELOG.md has no section for 0.3.0.\n")
