"""Machines that do not agree on the time: leases go by the clock of the database."""

import os
import re
from pathlib import Path

import pytest

from tests.faults.harness import Harness, harness
from tests.support.service_process import ServiceProcess, command, environment

IS_LONG = os.environ.get("CUEPOST_TEST_CLOCKS") == "all"
CAP = 2
EVENTS = 24
# So long that each worker has requests under way whenever it is judged by the other.
ANSWER_SECONDS = 1.0


def off_by(seconds: int, it: Harness, log: Path) -> ServiceProcess:
    program = command(str(seconds), "worker", module="tests.support.wrong_clock")
    return ServiceProcess.of_command(program, environment(it.settings), "worker", log)


@pytest.mark.parametrize("seconds", [15, -15, 60, -60] if IS_LONG else [15, -60])
def test_a_worker_whose_clock_is_off_sends_nothing_twice(
    postgres_settings: dict[str, str], tmp_path: Path, seconds: int
) -> None:
    settings = postgres_settings | {"ENDPOINT_CONCURRENCY": str(CAP)}
    with (
        harness(settings, endpoints=4, delay=ANSWER_SECONDS) as it,
        ServiceProcess(it.settings, "api"),
        ServiceProcess(it.settings, "worker") as right,
        off_by(seconds, it, tmp_path / "log") as wrong,
        it.load() as load,
    ):
        load.wait_for(EVENTS)
        load.stop()
        it.wait_until_settled()
        it.require_nothing_lost(load)
        assert max(it.receiver.most_at_once.values()) <= CAP
        ended = wrong.stop()
        assert right.stop().code == ended.code == 0
    found = re.search(r"event=clock_is_off seconds_ahead=(\S+)", ended.stderr)
    assert found is not None, ended.stderr
    assert float(found[1]) == pytest.approx(seconds, abs=1)


def test_a_worker_whose_clock_is_far_off_claims_nothing(
    postgres_settings: dict[str, str], tmp_path: Path
) -> None:
    with (
        harness(postgres_settings, endpoints=1) as it,
        ServiceProcess(it.settings, "api"),
        off_by(600, it, tmp_path / "log") as wrong,
        it.load() as load,
    ):
        load.wait_for(3)
        load.stop()
        assert it.receiver.seen() == []
        ended = wrong.stop()
        with ServiceProcess(it.settings, "worker"):
            it.wait_until_settled()
        it.require_nothing_lost(load)
    assert ended.code == 0
    assert "this machine's clock is 600 s ahead of the database's; set it" in ended.stderr
