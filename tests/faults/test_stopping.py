"""Ordered ends, and processes that do not fit together."""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import pytest

from cuepost.bootstrap.runtime import ServiceRuntime
from cuepost.interfaces.cli.runtime import CannotRun, CommandContext
from cuepost.ports.store import StoreUnavailable
from tests.faults.harness import Harness, harness, queued
from tests.support.recording_receiver import RecordingReceiver
from tests.support.service_process import Ended, ServiceProcess, environment, free_port, run

SLOW_SECONDS = 12.0
LONGEST_PAUSE_SECONDS = 1.0


def test_sigterm_under_load_ends_what_is_in_flight_and_leaves_the_rest(
    sqlite_settings: dict[str, str],
) -> None:
    sqlite_settings |= {"ENDPOINT_CONCURRENCY": "2"}
    with harness(sqlite_settings, delay=0.2) as it:
        service = ServiceProcess(it.settings, fresh=True)
        with service, it.load(pace=0.0) as load:
            load.wait_for(100)
            it.receiver.wait_until(lambda now: now.under_way == 6, "nothing is in flight")
            assert service.stop() == Ended(0, "")
            load.stop()
        assert it.receiver.under_way == 0
        assert {each.status for each in it.receiver.seen()} == {200}
        left = it.ask(queued)
        assert left.waiting > 0
        assert left.leased == 0

        it.receiver.delay = 0.0
        with ServiceProcess(it.settings):
            it.wait_until_settled()
        it.require_nothing_lost(load)


@pytest.mark.timeout(300)
def test_sigterm_of_a_worker_keeps_no_fast_endpoint_waiting(
    postgres_settings: dict[str, str],
) -> None:
    """A deploy: one of two workers ends, and has a request to a slow receiver in flight."""
    with harness(postgres_settings, endpoints=6) as it, ExitStack() as running:
        _, leaving, staying = (
            running.enter_context(ServiceProcess(it.settings, half))
            for half in ("api", "worker", "worker")
        )
        # Of two lanes with consecutive numbers each worker has one.
        slow, fast = it.paths[:2], it.paths[2:]
        with it.load(pace=0.05) as load:
            load.wait_for(50)
            it.receiver.delays |= dict.fromkeys(slow, SLOW_SECONDS)
            since = time.time()
            it.receiver.wait_until(lambda now: got(now, slow, since), "nothing is slow")
            began = time.time()
            ended = leaving.stop()
            until = time.time()
            it.receiver.delays.clear()
        assert (ended, staying.is_running) == (Ended(0, ""), True)
        # It has waited for its slow request, and no other worker has.
        assert until - began > SLOW_SECONDS / 2
        pauses = {path: longest_pause(it, path, began, until) for path in fast}
        assert max(pauses.values()) < LONGEST_PAUSE_SECONDS, pauses
        it.wait_until_settled()
        it.require_nothing_lost(load)


def got(receiver: RecordingReceiver, paths: Sequence[str], since: float) -> bool:
    return {each.path for each in receiver.requests if each.at > since} >= set(paths)


def longest_pause(it: Harness, path: str, began: float, until: float) -> float:
    """Between two requests, while there was always something to send."""
    times = [each.at for each in it.receiver.seen() if each.path == path]
    marks = [began, *(at for at in times if began < at < until), until]
    return max(later - earlier for earlier, later in pairwise(marks))


def test_a_second_sender_on_an_embedded_store_is_refused(sqlite_settings: dict[str, str]) -> None:
    first = sqlite_settings | {"PORT": str(free_port())}
    with ServiceProcess(first) as service:
        ended = run(sqlite_settings | {"PORT": str(free_port())}, "serve")
        assert (ended.returncode, ended.stdout, ended.stderr) == (
            1,
            "",
            (
                "Error: Another process already sends from this embedded store; "
                "only one can at a time.\n"
            ),
        )
        assert service.stop() == Ended(0, "")


def test_a_worker_on_an_embedded_store_is_refused(sqlite_settings: dict[str, str]) -> None:
    ended = run(sqlite_settings, "worker")
    assert (ended.returncode, ended.stdout, ended.stderr) == (
        1,
        "",
        (
            "Error: Only 'cuepost serve' can send from an embedded store; "
            "'cuepost worker' needs PostgreSQL.\n"
        ),
    )
    assert not Path(sqlite_settings["DATA_DIR"]).exists()


def test_a_store_that_fails_during_the_start_is_said_in_one_line(
    sqlite_settings: dict[str, str],
) -> None:
    async def greet(_: CommandContext) -> None:
        raise StoreUnavailable("the disk is gone")

    runtime = ServiceRuntime(environment(sqlite_settings | {"PORT": str(free_port())}))
    with pytest.raises(CannotRun, match=r"^the disk is gone$"):
        runtime.serve(greet, sending=True)
