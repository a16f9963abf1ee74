"""A worker that sleeps through its lease: another one takes over, and its own result is refused."""

import re
import signal

from tests.faults.world import World, world
from tests.support.service_process import Ended, ServiceProcess

LATE = re.compile(r"event=late_results_refused worker=\S+ count=1\n")


def test_a_late_result_is_refused(postgres_settings: dict[str, str]) -> None:
    with (
        world(postgres_settings, endpoints=1) as it,
        ServiceProcess(it.settings, "api"),
        ServiceProcess(it.settings, "worker") as sleeper,
    ):
        load = it.load()
        it.receiver.hold()
        report_one(it, load.acknowledged)
        it.receiver.wait_until(lambda now: now.under_way == 1, "nothing was sent")
        sleeper.send_signal(signal.SIGSTOP)
        it.note_leases()
        it.receiver.release()

        with ServiceProcess(it.settings, "worker") as other:
            it.receiver.wait_until(lambda now: len(now.requests) == 2, "nobody took over")
            it.wait_until_settled()
            sleeper.send_signal(signal.SIGCONT)
            ended = sleeper.stop()
            assert other.stop() == Ended(0, "")

        assert ended.code == 0
        assert LATE.search(ended.stderr), ended.stderr
        history = it.require_nothing_lost(load)
        [delivery] = history.deliveries
        [attempt] = delivery.attempts
        assert (len(history.seen), attempt.number) == (2, 1)
        # The one that is kept is the other worker's.
        assert attempt.started_at > history.seen[0].at + 5


def report_one(it: World, acknowledged: set[str]) -> None:
    _, result = it.visitor.report(it.projects[0][0], "exporting", "completed")
    acknowledged.add(result["eventId"])
