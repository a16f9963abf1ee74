"""`make bench`: runs every scenario, prints the tables, and stores the raw figures as JSON."""

import asyncio
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click
import uvloop

from benchmarks import (
    accounts,
    against,
    bare_client,
    checkout,
    delivery,
    downloads,
    fairness,
    growth,
    ingest,
    latency,
    machine,
    memory,
    overview,
    pages,
    profile,
    store_cost,
    trace,
    workers,
)
from benchmarks.figures import Figure, NotRun, attempted
from benchmarks.peers import scenario as peers
from benchmarks.report import Report, markdown, unusual
from benchmarks.sizes import FULL, SMALL, Sizes
from benchmarks.stores import POSTGRES, SQLITE


def _pages(sizes: Sizes) -> Iterator[Figure]:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        for each in runner.run(pages.compare(sizes.page_rows)):
            yield Figure.of(f"pages.{each.name}", each)


Scenario = Callable[[Sizes], Iterator[Figure | NotRun]]
SCENARIOS: dict[str, Scenario] = {
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
    "overview": overview.measured,
    "accounts": accounts.measured,
    "pages": _pages,
    "profile": profile.measured,
    "store": store_cost.measured,
    "trace": trace.measured,
}
# The field of `Sizes` that `--count` sets.
COUNTS = (
    *("deliveries", "singles", "new_connections", "ingested", "ingested_singly"),
    *("measured_beside_history", "peer_deliveries", "stored"),
)


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
@click.option(
    "--against", "other", help="A folder or a commit to compare with: `delivery` and `ingest`."
)
@click.option("--small", is_flag=True, help="Only see that everything works; figures mean nothing.")
@click.option("--history", type=int, help="Rows of history for `growth`.")
@click.option("--pending", type=int, help="Deliveries that wait, for `growth` and `memory`.")
@click.option("--count", type=int, help="Deliveries of each feed.")
@click.option("--rounds", type=int, help="How often each rate is taken.")
@click.option("--store", type=click.Choice([SQLITE.key, POSTGRES]), help="On this one alone.")
@click.option("--case", "cases", multiple=True, help="Of `delivery` these cases alone.")
def main(
    *,
    names: Sequence[str],
    kept_in: Path | None,
    document: Path | None,
    earlier: Path | None,
    other: str | None,
    small: bool,
    **sized: Any,
) -> None:
    """Run these scenarios, or all of them; only with --from, none."""
    if small and document is not None:
        raise click.UsageError(
            "The figures of a small run mean nothing; they are not written down."
        )
    sizes = _sizes(SMALL if small else FULL, **sized)
    report = Report({}) if earlier is None else Report.read(earlier)
    if other:
        chosen = _against(other, names)
    else:
        all_names = () if earlier else tuple(SCENARIOS)
        chosen = {name: SCENARIOS[name] for name in names or all_names}
    failed = _run(report, chosen, sizes, kept_in)
    click.echo(markdown(report))
    if document is not None:
        report.put_into(document)
    sys.exit(failed)


def _against(place: str, names: Sequence[str]) -> dict[str, Scenario]:
    if unknown := set(names) - against.SCENARIOS.keys():
        raise click.UsageError(f"--against is not for {', '.join(sorted(unknown))}.")
    theirs = checkout.other(place)
    return {
        f"against {theirs.name}: {name}": partial(against.SCENARIOS[name], other=theirs)
        for name in names or against.SCENARIOS
    }


def _sizes(
    sizes: Sizes,
    history: int | None,
    pending: int | None,
    count: int | None,
    rounds: int | None,
    **rest: Any,
) -> Sizes:
    for given, names in (
        (history, ("history",)),
        (pending, ("pending", "many_pending")),
        (count, COUNTS),
        (rounds, ("rounds", "peer_rounds")),
    ):
        if given is not None:
            changed: dict[str, Any] = dict.fromkeys(names, given)
            sizes = replace(sizes, **changed)
    return replace(sizes, **rest)


def _run(
    report: Report, scenarios: Mapping[str, Scenario], sizes: Sizes, kept_in: Path | None
) -> bool:
    """Whether a scenario failed."""
    for name, scenario in scenarios.items():
        began, before = time.monotonic(), machine.load()
        report.forget(name.split()[0])
        for found in attempted(name, name, scenario(sizes)):
            _take(report, found)
        click.echo(f"{name}: {time.monotonic() - began:.0f} s", err=True)
        report.machine = machine.described()
        report.runs[name] = {
            "commit": checkout.commit(),
            "load before": before,
            "load after": machine.load(),
            "sizes": unusual(sizes),
        }
        if kept_in is not None:
            report.write(kept_in)
    return bool(scenarios) and any(each.failed for each in report.not_run)


def _take(report: Report, found: Figure | NotRun) -> None:
    report.take(found)
    if isinstance(found, Figure):
        more = f", rate {found.raw['rate ratio']:.2f} ×" if "rate ratio" in found.raw else ""
        click.echo(f"{found.what}: {found.value:,.2f} {found.unit}{more}", err=True)
    else:
        click.echo(f"{found.what}: not run: {found.why}", err=True)


if __name__ == "__main__":
    main()
