"""Checks the pinned runtime packages against known advisories, with pip-audit.

The exit code is 1 if there is an advisory for one of them, or if some could not be checked. If the
database is not available at all, a message says so and the exit code is 0, so that a machine
without it can run the other checks.
"""

import json
import subprocess
import sys
from pathlib import Path

from pinned import RUNTIME

PIP_AUDIT = Path(__file__).parents[1] / ".cache" / "audit" / "bin" / "pip-audit"


def verdict(report: str, complaints: str) -> tuple[int, str]:
    """The exit code and the message for a JSON report; an empty report means no database."""
    packages = json.loads(report)["dependencies"] if report.strip() else []
    unknown = [each["name"] for each in packages if "skip_reason" in each]
    if len(unknown) == len(packages):
        last_words = complaints.strip().rpartition("\n")[2]
        reason = "it knows none of the packages" if packages else last_words
        return 0, f"audit: SKIPPED, there is no database of advisories here: {reason}"
    found = [
        f"{each['name']} {each['version']}: {one['id']}, fixed in {one['fix_versions']}"
        for each in packages
        for one in each.get("vulns", ())
    ]
    found += [f"{name}: could not be looked up" for name in unknown]
    return bool(found), "\n".join(found or [f"audit: no advisory for {len(packages)} packages"])


def main() -> int:
    command = [PIP_AUDIT, "--requirement", RUNTIME, "--require-hashes", "--disable-pip"]
    made = subprocess.run(
        [*map(str, command), "--format", "json", "--progress-spinner", "off"],
        capture_output=True,
        text=True,
        check=False,
    )
    code, words = verdict(made.stdout, made.stderr)
    print(words)
    return code


if __name__ == "__main__":
    sys.exit(main())
