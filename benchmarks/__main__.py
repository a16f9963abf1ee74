"""`make bench`: runs every scenario, prints the tables, and keeps the raw figures as JSON."""

import asyncio
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import click
import uvloop

from benchmarks import (
    bare_client,
    delivery,
    downloads,
    fairness,
    growth,
    ingest,
    latency,
    machine,
    memory,
    pages,
    workers,
)
from benchmarks.figures import Figure, NotRun, attempted
from benchmarks.peers import scenario as peers
from benchmarks.report import Report, markdown
from benchmarks.sizes import FULL, SMALL, Sizes
from benchmarks.stores import POSTGRES, SQLITE


def _pages(sizes: Sizes) -> Iterator[Figure]:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        for each in runner.run(pages.compare(sizes.page_rows)):
            yield Figure.of(f"pages.{each.name}", each)


SCENARIOS: dict[str, Callable[[Sizes], Iterator[Figure | NotRun]]] = {
    "bare": bare_client.measured,
    "delivery": delivery.measured,
    "ingest": ingest.measured,
    "latency": latency.measured,
    "peers": peers.measured,
    "workers": workers.measured,
    "fairness": fairness.measured,
    "downloads": downloads.measured,
    "memory": memory.measured,
    "growth": growth.measured,
    "pages": _pages,
}


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(list(SCENARIOS)))
@click.option("--json", "kept_in", type=click.Path(path_type=Path), help="Keep the figures here.")
@click.option("--write", "document", type=click.Path(path_type=Path), help="Put the tables here.")
@click.option(
    "--from",
    "earlier",
    type=click.Path(path_type=Path, exists=True),
    help="Figures of an earlier run; scenarios that are named now replace their own.",
)
@click.option("--small", is_flag=True, help="Only see that everything works; figures mean nothing.")
@click.option("--history", type=int, help="Rows of history for `growth`.")
@click.option("--pending", type=int, help="Deliveries that wait, for `growth` and `memory`.")
@click.option("--rounds", type=int, help="How often each rate is taken.")
@click.option("--store", type=click.Choice([SQLITE.key, POSTGRES]), help="On this one alone.")
def main(
    *,
    names: Sequence[str],
    kept_in: Path | None,
    document: Path | None,
    earlier: Path | None,
    small: bool,
    history: int | None,
    pending: int | None,
    rounds: int | None,
    store: str | None,
) -> None:
    """Run these scenarios, or all of them; with --from alone none."""
    if small and document is not None:
        raise click.UsageError(
            "The figures of a small run mean nothing; they are not written down."
        )
    sizes = _sizes(SMALL if small else FULL, history, pending, rounds, store)
    report = Report({}, asdict(sizes)) if earlier is None else Report.read(earlier)
    chosen = names or (() if earlier else tuple(SCENARIOS))
    failed = _run(report, chosen, sizes, kept_in) if chosen else False
    click.echo(markdown(report))
    if document is not None:
        report.put_into(document)
    sys.exit(failed)


def _sizes(
    sizes: Sizes, history: int | None, pending: int | None, rounds: int | None, store: str | None
) -> Sizes:
    if history is not None:
        sizes = replace(sizes, history=history)
    if pending is not None:
        sizes = replace(sizes, pending=pending, many_pending=pending)
    if rounds is not None:
        sizes = replace(sizes, rounds=rounds, peer_rounds=rounds)
    return replace(sizes, store=store)


def _run(report: Report, names: Sequence[str], sizes: Sizes, kept_in: Path | None) -> bool:
    """Whether something failed."""
    before = machine.load()
    for name in names:
        began = time.monotonic()
        report.forget(name)
        for found in attempted(name, name, SCENARIOS[name](sizes)):
            _take(report, found)
        click.echo(f"{name}: {time.monotonic() - began:.0f} s", err=True)
        load = {"load before": before, "load after": machine.load()}
        report.machine = {**machine.described(), **load}
        report.sizes = asdict(replace(sizes, store=None))
        if kept_in is not None:
            report.write(kept_in)
    return any(each.failed for each in report.not_run)


def _take(report: Report, found: Figure | NotRun) -> None:
    report.take(found)
    if isinstance(found, Figure):
        click.echo(f"{found.what}: {found.value:,.2f} {found.unit}", err=True)
    else:
        click.echo(f"{found.what}: not run: {found.why}", err=True)


if __name__ == "__main__":
    main()
