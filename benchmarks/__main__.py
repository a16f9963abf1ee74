"""`make bench`: runs every benchmark and prints a table, and JSON with the raw figures."""

import asyncio
import json
import os
import platform
import sqlite3
import sys
from dataclasses import asdict

import uvloop

import cuepost
from benchmarks import ingest
from benchmarks.figures import Comparison


def machine() -> dict[str, object]:
    return {
        "cuepost": cuepost.__version__,
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
    }


def table(comparisons: list[Comparison]) -> str:
    rows = [("benchmark", "measured", "beside", "ratio")] + [
        (
            each.name,
            f"{each.measured:,.0f} {each.unit}",
            f"{each.beside:,.0f} {each.unit} ({each.beside_name})",
            f"{each.ratio:.2f}",
        )
        for each in comparisons
    ]
    widths = [max(len(row[place]) for row in rows) for place in range(4)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    )


def main() -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        comparisons = runner.run(ingest.compare())
    print(table(comparisons))
    if "--json" in sys.argv:
        figures = [asdict(each) | {"ratio": each.ratio} for each in comparisons]
        print(json.dumps({"machine": machine(), "figures": figures}, indent=2))


main()
