import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks import against, checkout, profile, store_cost
from benchmarks.__main__ import main
from benchmarks.delivery import Case, delivered
from benchmarks.environment import product
from benchmarks.fairness import Calls, compared, undisturbed
from benchmarks.figures import Figure, NotRun, middle, percentile
from benchmarks.peers import scenario
from benchmarks.sizes import SMALL
from benchmarks.stolen_time import StolenTime
from benchmarks.stores import SQLITE

ROOT = Path(__file__).parents[2]


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
    deliveries_of_both = against.SCENARIOS["delivery"]
    sizes = replace(SMALL, store=SQLITE.key, cases=("single",))
    (found,) = deliveries_of_both(sizes, older)
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


def test_what_is_not_installed_is_told_as_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    (no_perf,) = profile.measured(SMALL)
    no_node = next(scenario.measured(SMALL))
    assert isinstance(no_perf, NotRun)
    assert isinstance(no_node, NotRun)
    assert (no_perf.failed, "not installed" in no_perf.why) == (False, True)
    assert (no_node.key, no_node.failed) == ("peers.bullmq", False)
    assert "no Node.js" in no_node.why


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
        it.feed(it.populated.in_turn())
        it.wait_until_settled()
        # Lines are written in groups, at the latest when the service ends.
        it.stop()
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
