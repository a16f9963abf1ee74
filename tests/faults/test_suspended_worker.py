"""A process that is suspended past its lease and goes on: every request stays on record.

As SIGSTOP and SIGCONT do it, or a laptop that sleeps, or a virtual machine that is paused.
"""

import signal
import time
from collections import Counter

from tests.faults.harness import Harness, harness
from tests.support.history_checker import History
from tests.support.service_process import Ended, ServiceProcess

# Longer than a lease.
SUSPENDED_SECONDS = 13.0
# Three attempts that no one answers end soon enough.
HURRIED = {"ATTEMPT_TIMEOUT": "3", "RETRY_DELAYS": "1,1"}


def test_the_only_process_of_an_embedded_store_sends_no_second_copy(
    sqlite_settings: dict[str, str],
) -> None:
    with harness(sqlite_settings | HURRIED, endpoints=1) as it:
        with ServiceProcess(it.settings) as service:
            report_one_to_a_receiver_that_hangs(it)
            suspend(service)
            it.wait_until_settled()
            assert service.stop() == Ended(0, "")
        history = on_record(it)
    assert outcomes(history) == {"timeout": 3}
    assert len(history.seen) == 3


def test_of_two_workers_the_one_that_was_suspended_keeps_what_it_sent_on_record(
    postgres_settings: dict[str, str],
) -> None:
    with harness(postgres_settings | HURRIED, endpoints=1) as it:
        with (
            ServiceProcess(it.settings, "api"),
            ServiceProcess(it.settings, "worker") as sleeper,
        ):
            report_one_to_a_receiver_that_hangs(it)
            with ServiceProcess(it.settings, "worker") as other:
                suspend(sleeper)
                it.wait_until_settled()
                assert other.stop() == Ended(0, "")
            ended = sleeper.stop()
        history = on_record(it)
    assert (ended.code, "event=late_results" in ended.stderr) == (0, True)
    assert outcomes(history) == {"superseded": 1, "timeout": 3}
    assert len(history.seen) == 4


def test_a_late_success_is_kept_beside_the_one_of_whoever_took_over(
    postgres_settings: dict[str, str],
) -> None:
    with (
        harness(postgres_settings, endpoints=1) as it,
        ServiceProcess(it.settings, "api"),
        ServiceProcess(it.settings, "worker") as sleeper,
    ):
        report_one_to_a_receiver_that_hangs(it)
        sleeper.send_signal(signal.SIGSTOP)
        it.receiver.release()
        with ServiceProcess(it.settings, "worker") as other:
            it.receiver.wait_until(lambda now: len(now.requests) == 2, "no worker took over")
            it.wait_until_settled()
            sleeper.send_signal(signal.SIGCONT)
            assert sleeper.stop().code == 0
            assert other.stop() == Ended(0, "")
        history = on_record(it)
    assert outcomes(history) == {"superseded": 1, "delivered": 1}
    assert len(history.seen) == 2


def report_one_to_a_receiver_that_hangs(it: Harness) -> None:
    it.load()
    it.receiver.hold()
    it.api_user.report(it.projects[0][0], "exporting", "completed")
    it.receiver.wait_until(lambda now: now.under_way == 1, "nothing was sent")


def suspend(process: ServiceProcess) -> None:
    process.send_signal(signal.SIGSTOP)
    time.sleep(SUSPENDED_SECONDS)  # noqa: TID251  # the process is to miss this much time
    process.send_signal(signal.SIGCONT)


def on_record(it: Harness) -> History:
    history = it.history(it.load())
    history.pauses = tuple(map(float, it.settings.get("RETRY_DELAYS", "60,300").split(",")))
    assert history.broken_promises() == []
    return history


def outcomes(history: History) -> Counter[str]:
    [delivery] = history.deliveries
    return Counter(each.outcome for each in delivery.attempts)
