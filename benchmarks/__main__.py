"""`make bench`: runs every benchmark and prints a table, and JSON with the raw figures."""

import asyncio
import json
import os
import platform
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict

import click
import uvloop

import cuepost
from benchmarks import delivery, downloads, fairness, ingest, pages
from benchmarks.figures import Comparison


def machine() -> dict[str, object]:
    return {
        "cuepost": cuepost.__version__,
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
    }


def table(comparisons: Sequence[Comparison]) -> str:
    rows = [("benchmark", "measured", "beside", "ratio", "")] + [
        (
            each.name,
            f"{each.measured:,.{_places(each)}f} {each.unit}",
            f"{each.beside:,.{_places(each)}f} {each.unit} ({each.beside_name})",
            f"{each.ratio:.2f}",
            each.notes,
        )
        for each in comparisons
    ]
    widths = [max(len(row[place]) for row in rows) for place in range(5)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def _places(each: Comparison) -> int:
    return 1 if each.unit == "ms" else 0


def _pages() -> Iterator[Comparison]:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        yield from runner.run(pages.compare())


def _ingest() -> Iterator[Comparison]:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        yield from runner.run(ingest.compare())


SCENARIOS: dict[str, Callable[[], Iterator[Comparison]]] = {
    "ingest": _ingest,
    "delivery": lambda: delivery.compare(20_000),
    "fairness": lambda: fairness.compare(fairness.Scale()),
    "downloads": lambda: iter(downloads.measured()),
    "pages": _pages,
}


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(list(SCENARIOS)))
@click.option("--json", "as_json", is_flag=True, help="The raw figures too, with the versions.")
def main(names: Sequence[str], as_json: bool) -> None:
    """Run these scenarios, or all of them."""
    comparisons = [each for name in names or SCENARIOS for each in SCENARIOS[name]()]
    click.echo(table(comparisons))
    if as_json:
        figures = [asdict(each) | {"ratio": each.ratio} for each in comparisons]
        click.echo(json.dumps({"machine": machine(), "figures": figures}, indent=2))


main()
