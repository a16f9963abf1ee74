"""The figures of a run as tables."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from benchmarks.figures import Figure, NotRun
from benchmarks.judging import Judged

# The size of the store in the aim about growth.
GROWN = {"history rows": 10_000_000, "pending": 1_000_000}
CPU = ("app", "store", "receiver", "generator")
# Smaller shares of a delivery are summed up.
LEAST_MICROSECONDS = 3.0
# They have their own tables.
APART = ("against.", "profile.", "frames.", "store.", "pages.")
Row = tuple[str, ...]


def sections(
    aims: Sequence[Judged],
    figures: Sequence[Figure],
    not_run: Sequence[NotRun],
    runs: Mapping[str, Mapping[str, Any]],
    machine: Mapping[str, Any],
) -> Iterator[str]:
    yield "### Aims"
    yield _summary(aims)
    yield from _caution(runs, machine)
    yield table(_aim_rows([each for each in aims if each.met is not None]))
    if missing := [each for each in aims if each.met is None]:
        reported = "; ".join(f"{each.text}, beside {each.against}" for each in missing)
        yield f"Not measured: {reported}."
    yield from _short_growth(figures)
    for title, begin, rows in (
        ("Beside another commit", "against.", _comparison_rows),
        ("Layers: µs of CPU per delivery, all threads", "profile.", _share_rows),
        ("Our folders: µs of CPU per delivery, main thread", "frames.", _share_rows),
        ("The store alone: µs of CPU per delivery", "store.", _share_rows),
    ):
        if some := [each for each in figures if each.key.startswith(begin)]:
            yield f"### {title}"
            yield table(rows(some))
    rest = [each for each in figures if not each.key.startswith(APART)]
    if rates := [each for each in rest if _has_cpu(each)]:
        yield "### Rates"
        yield table(_rate_rows(rates))
    if others := [each for each in rest if not _has_cpu(each)]:
        yield "### Other figures"
        yield table(_detail_rows(others))
    if pages := [each for each in figures if each.key.startswith("pages.")]:
        yield _slowest(pages)
    if not_run:
        yield "### Not run"
        yield "\n".join(f"- {each.what}: {each.why}" for each in not_run)
    yield "### Runs"
    yield table(_run_rows(runs))
    yield "; ".join(f"{name} {each}" for name, each in machine.items()) + "."


def _summary(aims: Sequence[Judged]) -> str:
    met = sum(each.met is True for each in aims)
    not_met = sum(each.met is False for each in aims)
    return (
        f"Of {len(aims)} ratios {met} are met, {not_met} are not, and "
        f"{len(aims) - met - not_met} were not measured."
    )


def _caution(runs: Mapping[str, Mapping[str, Any]], machine: Mapping[str, Any]) -> Iterator[str]:
    """Load at the beginning is not caused by the run itself."""
    busy = [name for name, run in runs.items() if run["load before"] > machine.get("cores", 1)]
    if busy:
        yield (
            f"**Other work was done on the machine** when these began: {', '.join(busy)}. Their "
            "absolute figures mean nothing, and their ratios little where rounds are few."
        )


def _aim_rows(aims: Sequence[Judged]) -> Iterator[Row]:
    yield ("", "aim", "measured", "beside", "bound", "ratio", "met")
    for each in aims:
        beside = each.against
        if each.beside is not None and each.unit != "×" and not beside[:1].isdigit():
            beside += f" ({number(each.beside)} {each.unit})"
        yield (
            str(each.number),
            each.text,
            "" if each.measured is None else f"{number(each.measured)} {each.unit}",
            beside,
            each.bound,
            "" if each.ratio is None else f"{each.ratio:.2f}",
            "yes" if each.met else "**no**",
        )


def _short_growth(figures: Sequence[Figure]) -> Iterator[str]:
    for each in figures:
        is_short = any(each.raw.get(name, 0) < wanted for name, wanted in GROWN.items())
        if each.key.startswith("growth.") and is_short:
            yield (
                f"Growth was measured short of its aim, which names {GROWN['history rows']:,} "
                f"history rows and {GROWN['pending']:,} pending: {each.what}. Its verdict is for "
                "that size."
            )


def _comparison_rows(figures: Sequence[Figure]) -> Iterator[Row]:
    yield ("", "CPU ×", "from – to", "rate ×", "from – to", "CPU s per 1,000", "/s", "rounds")
    for each in figures:
        raw = each.raw
        ratios = [
            reported
            for name in ("CPU ratio", "rate ratio")
            for reported in (
                f"{raw[name]:.2f}",
                f"{raw[name + ', least']:.2f} – {raw[name + ', most']:.2f}",
            )
        ]
        yield (
            each.what,
            *ratios,
            f"{raw['CPU s per 1,000, before']:.3f} → {raw['CPU s per 1,000']:.3f}",
            f"{number(raw['rate, before'])} → {number(raw['rate'])}",
            number(raw["rounds"]),
        )


def _share_rows(figures: Sequence[Figure]) -> Iterator[Row]:
    """Shares are the rows, processes or groups the columns."""
    names = dict.fromkeys(name for each in figures for name in each.raw)
    most = {name: max(each.raw.get(name, 0.0) for each in figures) for name in names}
    large = sorted((n for n in names if most[n] >= LEAST_MICROSECONDS), key=lambda n: -most[n])
    yield ("", *(each.what.removesuffix(", main thread") for each in figures))
    yield ("all", *(f"**{each.value:,.0f}**" for each in figures))
    for name in large:
        yield (name, *(f"{each.raw.get(name, 0.0):,.0f}" for each in figures))
    if small := names.keys() - set(large):
        rest = [sum(each.raw.get(name, 0.0) for name in small) for each in figures]
        yield ("the rest", *(f"{each:,.0f}" for each in rest))


def _has_cpu(figure: Figure) -> bool:
    return "lowest" in figure.raw and any(f"{who} CPU s per 1,000" in figure.raw for who in CPU)


def _rate_rows(figures: Sequence[Figure]) -> Iterator[Row]:
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


def _detail_rows(figures: Sequence[Figure]) -> Iterator[Row]:
    yield ("", "measured", "along with it")
    for each in figures:
        details = "; ".join(f"{name} {number(reported)}" for name, reported in each.raw.items())
        yield each.what, f"{number(each.value)} {each.unit}", details


def _slowest(pages: Sequence[Figure]) -> str:
    slow = max(pages, key=lambda each: each.value)
    worst = max(pages, key=lambda each: each.raw["ratio"])
    return (
        f"Of {len(pages)} pages the slowest is “{slow.what}” with {number(slow.value)} "
        f"{slow.unit}; beside a short history “{worst.what}” grows most, "
        f"{worst.raw['ratio']:.2f} ×."
    )


def _run_rows(runs: Mapping[str, Mapping[str, Any]]) -> Iterator[Row]:
    yield ("scenario", "commit", "load before and after", "sizes other than those of a full run")
    for name, run in runs.items():
        sizes = ", ".join(f"{key.replace('_', ' ')} {each}" for key, each in run["sizes"].items())
        yield name, run["commit"], f"{run['load before']} – {run['load after']}", sizes


def table(rows: Iterable[Row]) -> str:
    head, *body = rows
    lines = [head, ("---",) * len(head), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def number(value: float) -> str:
    """With the significant decimal places."""
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.{1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3}f}"
