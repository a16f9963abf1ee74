"""Writes figures as JSON with all details, and as tables into the documentation page."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.aims import aims
from benchmarks.figures import Figure, NotRun
from benchmarks.judging import judge
from benchmarks.sizes import FULL, Sizes
from benchmarks.tables import sections

BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"


@dataclass(slots=True)
class Report:
    """`runs` has the time and the commit of each scenario's figures."""

    machine: Mapping[str, Any]
    runs: dict[str, dict[str, Any]] = field(default_factory=dict)
    figures: list[Figure] = field(default_factory=list)
    not_run: list[NotRun] = field(default_factory=list)

    @classmethod
    def read(cls, file: Path) -> "Report":
        kept = json.loads(file.read_text(encoding="utf-8"))
        return cls(
            kept["machine"],
            kept["runs"],
            [Figure.read(each) for each in kept["figures"]],
            [NotRun.read(each) for each in kept["notRun"]],
        )

    def take(self, found: Figure | NotRun) -> None:
        """Replaces a figure of the same key from an earlier run."""
        if isinstance(found, NotRun):
            self.not_run.append(found)
            return
        self.figures[:] = [each for each in self.figures if each.key != found.key]
        self.figures.append(found)

    def forget(self, scenario: str) -> None:
        """Removes the notes that figures of this scenario were not measured."""
        self.not_run[:] = [each for each in self.not_run if each.key.partition(".")[0] != scenario]

    def write(self, file: Path) -> None:
        kept = {
            "machine": self.machine,
            "runs": self.runs,
            "figures": [each.kept() for each in self.figures],
            "notRun": [asdict(each) for each in self.not_run],
            "aims": [each.kept() for each in judge(aims(), self.figures)],
        }
        file.write_text(json.dumps(kept, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")

    def put_into(self, document: Path) -> None:
        """Replaces the text between the marks, and keeps everything around them."""
        before, _, rest = document.read_text(encoding="utf-8").partition(BEGIN)
        _, mark, after = rest.partition(END)
        assert mark, f"{document} has no place for figures"
        parts = (before.rstrip(), "", BEGIN, "", markdown(self), "", END, "", after.lstrip())
        document.write_text("\n".join(parts), encoding="utf-8")


def markdown(report: Report) -> str:
    judged = judge(aims(), report.figures)
    reported = sections(judged, report.figures, report.not_run, report.runs, report.machine)
    return "\n\n".join(reported)


def unusual(sizes: Sizes) -> dict[str, Any]:
    """The sizes that differ from the full run."""
    full = asdict(FULL)
    return {name: each for name, each in asdict(sizes).items() if each and each != full[name]}
