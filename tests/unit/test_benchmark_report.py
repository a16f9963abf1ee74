from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.__main__ import SCENARIOS
from benchmarks.aims import INGESTED, MODES, TODAY, aims
from benchmarks.bare_client import KINDS
from benchmarks.delivery import BARE, cases
from benchmarks.fairness import ARRIVALS
from benchmarks.figures import Figure, NotRun
from benchmarks.judging import judge
from benchmarks.report import BEGIN, END, Report, markdown, unusual
from benchmarks.sizes import FULL, SMALL

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "benchmarks.md"
CPU = ("app CPU s per 1,000", "store CPU s per 1,000")
RUN = {"commit": "abc1234", "load before": 0.1, "load after": 1.0, "sizes": {"rounds": 1}}


def deliveries(value: float = 20_000.0) -> list[Figure]:
    raw = dict.fromkeys(CPU, 0.02) | {"app MB": 90.0, BARE: 0.01}
    return [
        Figure(f"deliveries.{store}.{case.key}", case.name, "/s", value, raw)
        for store in ("sqlite", "postgres")
        for case in cases(SMALL)
    ]


def beside(cpu: float, rate: float) -> list[Figure]:
    ratios = {
        f"{name}{which}": reported
        for name, reported in (("CPU ratio", cpu), ("rate ratio", rate))
        for which in ("", ", least", ", most")
    }
    sides = ("CPU s per 1,000", "CPU s per 1,000, before", "rate", "rate, before", "rounds")
    return [
        Figure(
            f"against.{TODAY}.{name}.{store}.{case}", "", "×", cpu, ratios | dict.fromkeys(sides, 1)
        )
        for store in ("sqlite", "postgres")
        for name, modes in (("delivery", MODES), ("ingest", INGESTED))
        for case in modes
    ]


def peers() -> list[Figure]:
    python, node = dict.fromkeys(CPU, 0.2), dict.fromkeys(CPU, 0.02)
    slow = {"p50": 4.0, "p99": 9.0}
    return [
        Figure("peers.huey.deliveries", "", "/s", 476, python),
        Figure("peers.huey.latency", "", "ms", 9, slow),
        Figure("peers.bullmq.deliveries", "", "/s", 4_000, node),
        Figure("peers.bullmq.latency", "", "ms", 9, slow),
    ]


def others() -> list[Figure]:
    grown = {
        "CPU s per 1,000, empty store": 0.04,
        "s per 1,000": 0.1,
        "s per 1,000, empty store": 0.1,
    }
    quick = {"p50": 1.0, "p99": 2.0}
    found = [
        Figure("workers.waiting", "", "/s", 1_200, {"one worker/s": 1_000.0}),
        *(Figure(f"bare.{kind}", "", "/s", 30_000, dict.fromkeys(CPU[:1], 0.01)) for kind in KINDS),
    ]
    for store in ("sqlite", "postgres"):
        found += [
            Figure(f"memory.{store}.rest", "", "MB", 50),
            Figure(f"memory.{store}.load", "", "MB", 90),
            Figure(f"overview.{store}", "", "ms", 30),
            Figure(f"memory.{store}.pending", "", "MB", 110, {"more": 20.0}),
            Figure(f"growth.{store}", "", "s", 0.04, grown),
            Figure(f"accounts.{store}.deliveries", "", "s", 0.04, {"CPU ratio": 1.02}),
            Figure(f"trace.{store}", "", "functions", 150, {"files": 36, "functions": 150}),
            *(Figure(f"latency.{store}.{at}", "", "ms", 2, quick) for at in ("low", "half")),
            *(
                Figure(f"fairness.{store}.{how.key}", "", "ms", 2, {"ratio": 1.1})
                for how in ARRIVALS
            ),
        ]
    return found


def test_every_aim_is_judged_by_figures_that_the_scenarios_make() -> None:
    judged = judge(aims(), deliveries() + beside(cpu=0.45, rate=2.1) + peers() + others())
    # No webhook product can be installed from a package registry.
    assert {each.against for each in judged if each.met is None} == {
        "webhook products that run here"
    }
    assert [(each.number, each.text) for each in judged if each.met is False] == [
        (1, "PostgreSQL, one event a request, CPU of service and database"),
        (5, "two workers on PostgreSQL, receivers that take 50 ms"),
        (6, "SQLite, milestones taken, batches of 100"),
        (6, "SQLite, milestones taken, one a request"),
        (6, "PostgreSQL, milestones taken, batches of 100"),
        (6, "PostgreSQL, milestones taken, one a request"),
        (6, "SQLite, a new TLS connection each"),
        (6, "PostgreSQL, a new TLS connection each"),
        (7, "SQLite, files of ours that one delivery passes"),
        (7, "PostgreSQL, files of ours that one delivery passes"),
    ]


def test_aims_that_are_not_met_come_first_and_those_not_measured_next() -> None:
    judged = judge(aims(), [*deliveries(1_000.0), *peers()])
    order = [each.met for each in judged]
    assert order == sorted(order, key=[False, None, True].index)
    assert {each.against for each in judged if each.met is False} == {"BullMQ"}
    assert {each.number for each in judged if each.met} == {1, 3, 5}


def test_the_cpu_of_a_peer_counts_only_where_the_peer_is_written_in_python() -> None:
    judged = judge(aims(), [*deliveries(), *peers()])
    ratios = [each.ratio for each in judged if each.against == "the least Python peer"]
    assert ratios == pytest.approx([0.1, 0.1])


def test_figures_survive_their_file_and_stand_in_the_place_of_earlier_ones(tmp_path: Path) -> None:
    report = Report(
        {"cores": 2}, {"delivery": RUN}, deliveries(), [NotRun("peers.arq", "arq", "why")]
    )
    report.write(tmp_path / "figures.json")
    again = Report.read(tmp_path / "figures.json")
    assert again == report
    newer = Figure(report.figures[0].key, "newer", "/s", 1.0)
    again.take(newer)
    again.forget("peers")
    assert (again.figures, again.not_run) == ([*report.figures[1:], newer], [])


def test_tables_go_between_the_marks_of_the_document_and_nowhere_else(tmp_path: Path) -> None:
    document = tmp_path / "benchmarks.md"
    text = DOCUMENT.read_text(encoding="utf-8")
    document.write_text(text, encoding="utf-8")
    report = Report({"cores": 2}, {"delivery": RUN}, deliveries() + beside(1, 1) + others())
    for _ in range(2):
        report.put_into(document)
    written = document.read_text(encoding="utf-8")
    assert written.partition(BEGIN)[0] == text.partition(BEGIN)[0]
    assert written.partition(END)[2] == text.partition(END)[2]
    assert written.count("### Aims") == 1


@pytest.mark.parametrize(("rows", "reported"), [(1_000_000, True), (10_000_000, False)])
def test_growth_that_was_measured_short_of_its_aim_is_told(rows: int, reported: bool) -> None:
    raw = {"history rows": rows, "pending": 1_000_000}
    report = Report({}, {}, [Figure("growth.sqlite", "CPU beside much", "s", 0.04, raw)])
    assert ("short of its aim" in markdown(report)) is reported


def test_the_document_names_every_scenario() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert [name for name in SCENARIOS if f"| `{name}` |" not in text] == []


def test_shares_of_a_delivery_stand_beside_each_other_and_small_ones_are_summed_up() -> None:
    figures = [
        Figure("profile.sqlite.single.serve", "SQLite", "µs", 103, {"libc": 100.0, "epoll": 2.0}),
        Figure("profile.postgres.single.api", "`api`", "µs", 9, {"libc": 8.0, "futex": 1.0}),
    ]
    reported = markdown(Report({}, {}, figures))
    assert "|  | SQLite | `api` |" in reported
    assert "| libc | 100 | 8 |" in reported
    assert "| the rest | 2 | 1 |" in reported


@pytest.mark.parametrize(("load", "reported"), [(2.0, False), (2.1, True)])
def test_runs_that_began_on_a_busy_machine_are_told(load: float, reported: bool) -> None:
    report = Report({"cores": 2}, {"bare": RUN | {"load before": load}})
    assert ("when these began: bare." in markdown(report)) is reported


def test_the_report_names_the_commit_and_the_sizes_of_each_scenario() -> None:
    sizes = unusual(replace(FULL, rounds=1, store="sqlite"))
    assert sizes == {"rounds": 1, "store": "sqlite"}
    reported = markdown(Report({}, {"delivery": RUN | {"sizes": sizes}}, deliveries()))
    assert "| delivery | abc1234 | 0.1 – 1.0 | rounds 1, store sqlite |" in reported
