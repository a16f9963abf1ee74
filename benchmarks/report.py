"""Writes figures down: as JSON with all that belongs to them, and as tables for people."""

import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.aims import Judged, judge, machine_factor
from benchmarks.figures import Figure, NotRun

BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
# How large a store the aim about growth means.
GROWN = {"history rows": 10_000_000, "pending": 1_000_000}
CPU = ("app", "store", "receiver", "generator")


@dataclass(slots=True)
class Report:
    machine: Mapping[str, Any]
    sizes: Mapping[str, Any]
    figures: list[Figure] = field(default_factory=list)
    not_run: list[NotRun] = field(default_factory=list)

    @classmethod
    def read(cls, file: Path) -> "Report":
        kept = json.loads(file.read_text(encoding="utf-8"))
        return cls(
            kept["machine"],
            kept["sizes"],
            [Figure.read(each) for each in kept["figures"]],
            [NotRun.read(each) for each in kept["notRun"]],
        )

    def take(self, found: Figure | NotRun) -> None:
        """In the place of one of the same key that an earlier run left."""
        if isinstance(found, NotRun):
            self.not_run.append(found)
            return
        self.figures[:] = [each for each in self.figures if each.key != found.key]
        self.figures.append(found)

    def forget(self, scenario: str) -> None:
        """That it was not run."""
        self.not_run[:] = [each for each in self.not_run if each.key.partition(".")[0] != scenario]

    def write(self, file: Path) -> None:
        kept = {
            "machine": self.machine,
            "sizes": self.sizes,
            "figures": [each.kept() for each in self.figures],
            "notRun": [asdict(each) for each in self.not_run],
            "aims": [each.kept() for each in judge(self.figures)],
            "machineFactor": machine_factor(self.figures),
        }
        file.write_text(json.dumps(kept, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")

    def put_into(self, document: Path) -> None:
        """Between the marks; whatever people wrote around them stays."""
        before, _, rest = document.read_text(encoding="utf-8").partition(BEGIN)
        _, mark, after = rest.partition(END)
        assert mark, f"{document} has no place for figures"
        parts = (before.rstrip(), "", BEGIN, "", markdown(self), "", END, "", after.lstrip())
        document.write_text("\n".join(parts), encoding="utf-8")


def markdown(report: Report) -> str:
    return "\n\n".join(_sections(report))


def _sections(report: Report) -> Iterator[str]:
    yield "### Aims"
    yield table(_aim_rows(judge(report.figures)))
    for each in report.figures:
        if each.key.startswith("growth.") and _is_short(each):
            yield (
                f"Growth was measured short of its aim, which names {GROWN['history rows']:,} "
                f"history rows and {GROWN['pending']:,} pending: {each.what}. Its verdict is for "
                "that size."
            )
    if factor := machine_factor(report.figures):
        told = ", ".join(f"{name} {each:.2f}" for name, each in factor.items())
        yield (
            "The published figures are from another machine. What the peers do here, for one of "
            f"what was published of them: {told}; in the middle "
            f"{statistics.median(factor.values()):.2f}."
        )
    yield "### Figures"
    if rates := [each for each in report.figures if _has_cpu(each)]:
        yield table(_figure_rows(rates))
    if others := [each for each in report.figures if not _has_cpu(each)]:
        yield table(_detail_rows(others))
    if report.not_run:
        yield "### Not run"
        yield "\n".join(f"- {each.what}: {each.why}" for each in report.not_run)
    yield "### Machine, versions and sizes"
    facts = [*report.machine.items(), *_plain(report.sizes)]
    yield table([("", ""), *((name, str(each)) for name, each in facts)])


def _is_short(grown: Figure) -> bool:
    return any(grown.raw.get(name, 0) < wanted for name, wanted in GROWN.items())


def _plain(sizes: Mapping[str, Any], of: str = "") -> Iterator[tuple[str, Any]]:
    for name, size in sizes.items():
        if isinstance(size, Mapping):
            yield from _plain(size, f"{name}: ")
        elif size is not None:
            yield of + name.replace("_", " "), f"{size:,}" if isinstance(size, int) else size


def _aim_rows(aims: Sequence[Judged]) -> Iterator[tuple[str, ...]]:
    yield ("", "aim", "measured", "beside", "bound", "ratio", "met")
    for each in aims:
        beside = each.against
        if each.beside is not None and not each.against[:1].isdigit():
            beside += f" ({number(each.beside)} {each.unit})"
        yield (
            str(each.number),
            each.text,
            "" if each.measured is None else f"{number(each.measured)} {each.unit}",
            beside,
            each.bound,
            "" if each.ratio is None else f"{each.ratio:.2f}",
            {True: "yes", False: "**no**", None: "not measured"}[each.met],
        )


def _has_cpu(figure: Figure) -> bool:
    return "lowest" in figure.raw and any(f"{who} CPU s per 1,000" in figure.raw for who in CPU)


def _figure_rows(figures: Sequence[Figure]) -> Iterator[tuple[str, ...]]:
    yield (
        *("", "/s", "from – to", "app CPU s per 1,000", "store", "receiver", "generator"),
        *("app MB", "receiver busy"),
    )
    for each in figures:
        cpu = [each.raw.get(f"{who} CPU s per 1,000") for who in CPU]
        megabytes, busy = each.raw.get("app MB"), each.raw.get("receiver's share of a core")
        yield (
            each.what,
            number(each.value),
            f"{number(each.raw['lowest'])} – {number(each.raw['highest'])}",
            *("" if used is None else f"{used:.3f}" for used in cpu),
            "" if megabytes is None else f"{megabytes:.0f}",
            "" if busy is None else f"{100 * busy:.0f} %",
        )


def _detail_rows(figures: Sequence[Figure]) -> Iterator[tuple[str, ...]]:
    yield ("", "measured", "along with it")
    for each in figures:
        details = "; ".join(f"{name} {number(told)}" for name, told in each.raw.items())
        yield each.what, f"{number(each.value)} {each.unit}", details


def table(rows: Iterator[tuple[str, ...]] | Sequence[tuple[str, ...]]) -> str:
    head, *body = rows
    lines = [head, ("---",) * len(head), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def number(value: float) -> str:
    """With as many places as mean something."""
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.{1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3}f}"
