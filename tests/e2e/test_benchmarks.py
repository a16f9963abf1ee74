import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks import against, checkout, store_cost
from benchmarks.__main__ import SCENARIOS, main
from benchmarks.aims import INGESTED, MODES, TODAY, aims
from benchmarks.bare_client import KINDS
from benchmarks.delivery import Case, cases, delivered
from benchmarks.fairness import ARRIVALS, Calls, compared, undisturbed
from benchmarks.figures import Figure, NotRun, middle, percentile
from benchmarks.judging import judge
from benchmarks.report import BEGIN, END, Report, markdown
from benchmarks.scenery import product
from benchmarks.sizes import SMALL
from benchmarks.stolen_time import StolenTime
from benchmarks.stores import SQLITE

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "benchmarks.md"
CPU = ("app CPU s per 1,000", "store CPU s per 1,000")
RUN = {"commit": "abc1234", "load before": 0.1, "load after": 1.0, "sizes": {"rounds": 1}}


def deliveries(value: float = 20_000.0) -> list[Figure]:
    raw = dict.fromkeys(CPU, 0.02) | {"app MB": 90.0}
    return [
        Figure(f"deliveries.{store}.{case.key}", case.name, "/s", value, raw)
        for store in ("sqlite", "postgres")
        for case in cases(SMALL)
    ]


def beside(cpu: float, rate: float) -> list[Figure]:
    ratios = {
        f"{name}{which}": told
        for name, told in (("CPU ratio", cpu), ("rate ratio", rate))
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
            Figure(f"memory.{store}.pending", "", "MB", 110, {"more": 20.0}),
            Figure(f"growth.{store}", "", "s", 0.04, grown),
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
    assert {each.number for each in judged if each.met} == {3, 5}


def test_the_cpu_of_a_peer_counts_only_where_the_peer_is_written_in_python() -> None:
    judged = judge(aims(), [*deliveries(), *peers()])
    ratios = [each.ratio for each in judged if each.against == "the least Python peer"]
    assert ratios == pytest.approx([0.1, 0.1])


def test_a_median_is_told_with_its_range() -> None:
    rounds = [{"rate": 3.0, "cpu": 1.0}, {"rate": 1.0, "cpu": 5.0}, {"rate": 2.0, "cpu": 3.0}]
    assert middle(rounds, "rate") == {
        "rate": 2.0,
        "cpu": 3.0,
        "lowest": 1.0,
        "highest": 3.0,
        "rounds": 3,
    }


@pytest.mark.parametrize(("percent", "value"), [(50, 50.0), (99, 99.0), (100, 100.0)])
def test_a_percentile_is_one_of_the_values(percent: int, value: float) -> None:
    assert percentile([float(each) for each in range(100, 0, -1)], percent) == value


def test_two_checkouts_are_compared_round_by_round() -> None:
    def fed(rate: float, app: float) -> dict[str, float]:
        return {"rate": rate, "app CPU s per 1,000": app, "store CPU s per 1,000": 1.0}

    found = against.compared(
        [(fed(10, 1), fed(20, 0)), (fed(10, 3), fed(10, 1)), (fed(5, 9), fed(20, 1))]
    )
    assert [found[f"CPU ratio{each}"] for each in ("", ", least", ", most")] == [0.5, 0.2, 0.5]
    assert [found[f"rate ratio{each}"] for each in ("", ", least", ", most")] == [2, 1, 4]
    assert (found["CPU s per 1,000, before"], found["CPU s per 1,000"]) == (4.0, 2.0)
    assert (found["rate, before"], found["rate"], found["rounds"]) == (10.0, 20.0, 3)


def test_another_checkout_is_fed_in_turn_with_this_one(tmp_path: Path) -> None:
    for name in ("src", "benchmarks", "tests", "packages"):
        (tmp_path / "older").mkdir(exist_ok=True)
        (tmp_path / "older" / name).symlink_to(ROOT / name)
    older = checkout.other(str(tmp_path / "older"))
    scenario = against.SCENARIOS["delivery"]
    sizes = replace(SMALL, store=SQLITE.key, cases=("single",))
    (found,) = scenario(sizes, older)
    assert isinstance(found, Figure), found
    assert found.key == "against.older.delivery.sqlite.single"
    assert found.raw["rate ratio"] > 0
    assert found.raw["rounds"] == 1


def test_calls_during_which_a_core_was_taken_away_are_left_out() -> None:
    stolen = StolenTime()
    for at in (10.0, 20.0, 30.05):
        stolen.notice(at)
    # Before, during, just before it shows, long before it shows, after the last.
    calls = [(9.0, 9.5), (9.9, 20.5), (29.9, 30.0), (29.0, 29.9), (31.0, 32.0)]
    assert undisturbed(calls, stolen).undisturbed == pytest.approx([500.0, 900.0, 1_000.0])
    assert undisturbed(calls, stolen).share == pytest.approx(0.6)
    assert not undisturbed(calls, stolen).tell
    assert undisturbed([(9.9, 10.1)] + [(1.0, 2.0)] * 3, stolen).tell


def test_of_a_round_both_sides_and_their_ratio_are_told() -> None:
    good, bad = Calls([1.0] * 80, 100), Calls([2.0] * 89 + [3.0], 100)
    assert compared(good, bad) == pytest.approx(
        {
            "beside them": 3.0,
            "without them": 1.0,
            "ratio": 3.0,
            "calls left out, %": 10.0,
            "calls left out without them, %": 20.0,
        }
    )


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


@pytest.mark.parametrize(("rows", "told"), [(1_000_000, True), (10_000_000, False)])
def test_growth_that_was_measured_short_of_its_aim_is_told(rows: int, told: bool) -> None:
    raw = {"history rows": rows, "pending": 1_000_000}
    report = Report({}, {}, [Figure("growth.sqlite", "CPU beside much", "s", 0.04, raw)])
    assert ("short of its aim" in markdown(report)) is told


def test_the_document_names_every_scenario() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert [name for name in SCENARIOS if f"| `{name}` |" not in text] == []


def test_the_bare_clients_are_measured_and_proved(tmp_path: Path) -> None:
    kept = tmp_path / "figures.json"
    ran = CliRunner().invoke(main, ["bare", "--small", "--json", str(kept)])
    assert ran.exit_code == 0, ran.output
    figures = json.loads(kept.read_text(encoding="utf-8"))["figures"]
    assert [each["key"] for each in figures] == [
        "receiver",
        "bare.plain.keep-alive",
        "bare.tls.keep-alive",
        "bare.plain.new",
        "bare.tls.new",
    ]
    assert all(each["value"] > 0 for each in figures)


def test_figures_of_a_small_run_are_not_written_down(tmp_path: Path) -> None:
    ran = CliRunner().invoke(main, ["bare", "--small", "--write", str(tmp_path / "any.md")])
    assert (ran.exit_code, "mean nothing" in ran.output) == (2, True)


def test_a_measured_service_has_default_settings_and_keeps_its_log_in_a_file() -> None:
    with product(SQLITE, projects=1) as it:
        chosen = it.checkout.environment(it.settings)
        it.feed(it.furnished.in_turn())
        it.wait_until_settled()
        log = (it.folder / "serve-0.log").read_text(encoding="utf-8")
    assert {name for name in chosen if name.startswith("CUEPOST_")} == {
        "CUEPOST_DATA_DIR",
        "CUEPOST_MASTER_KEY",
        "CUEPOST_PORT",
        "CUEPOST_RECEIVER_HTTP",
        "CUEPOST_RECEIVER_NETWORKS",
        "CUEPOST_RECEIVER_PORTS",
    }
    assert "outcome=delivered" in log


def test_the_store_alone_is_measured_by_what_is_done_with_it() -> None:
    found = list(store_cost.measured(replace(SMALL, store=SQLITE.key)))
    assert [each.key for each in found] == ["store.sqlite.100", "store.sqlite.14", "store.sqlite.1"]
    for each in found:
        assert isinstance(each, Figure), each
        assert set(each.raw) == {"booking", "commit", "recording"}
        assert each.value == pytest.approx(sum(each.raw.values()))


def test_deliveries_are_measured_and_proved() -> None:
    found = delivered(SQLITE, Case("", "", count=60, endpoints=3, batch=20), rounds=2)
    assert found["rate"] > 0
    assert (found["rounds"], found["sent twice"]) == (2, 0)
