"""The disk is full under load: the API answers 503, recovers by itself, and loses nothing.

A limit on the size of files stands for the disk, for the service's own process alone: what it
wants to write beyond that, the operating system refuses.
"""

import os
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.e2e.first_steps import WELL, health, request
from tests.faults.harness import Harness, harness
from tests.support.coming_back import says_when_to_come_back
from tests.support.load import Load
from tests.support.service_process import ServiceProcess

ROUNDS = int(os.environ.get("CUEPOST_TEST_DISK_FULL", "2"))
EVENTS_PER_ROUND = 20
REFUSALS_PER_ROUND = 10
# Less than the write-ahead log needs, and more than is said about it on standard error.
ROOM_BYTES = 256 * 1024
PATIENCE_SECONDS = 30.0
pytestmark = pytest.mark.timeout(600)


@contextmanager
def full_disk(service: ServiceProcess) -> Iterator[None]:
    before = resource.prlimit(service.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(service.pid, resource.RLIMIT_FSIZE, (ROOM_BYTES, before[1]))
    try:
        yield
    finally:
        resource.prlimit(service.pid, resource.RLIMIT_FSIZE, before)


def test_everything_acknowledged_is_delivered(sqlite_settings: dict[str, str]) -> None:
    with harness(sqlite_settings) as it, ServiceProcess(it.settings) as service, it.load() as load:
        for _ in range(ROUNDS):
            load.wait_for(EVENTS_PER_ROUND)
            began = time.time()
            with full_disk(service):
                wait_for_refusals(load)
                require_503(it)
            it.outages.append((began, time.time()))
            load.wait_for(EVENTS_PER_ROUND)
        load.stop()
        it.wait_until_settled()
        assert health(it.api_user.base_url) == WELL
        ended = service.stop()
        assert ended.code == 0
        assert "Traceback" not in ended.stderr, ended.stderr
        it.require_nothing_lost(load)
        # It was up all the time, and answered.
        assert load.answers[0] == 0


def wait_for_refusals(load: Load) -> None:
    wanted = load.answers[503] + REFUSALS_PER_ROUND
    deadline = time.monotonic() + PATIENCE_SECONDS
    while load.answers[503] < wanted:
        assert time.monotonic() < deadline, load.answers
        load.pause()


def require_503(it: Harness) -> None:
    api_user = it.api_user
    refused = request(api_user.base_url, api_user.keys.api, "POST", "/v1/projects", {"name": "Cut"})
    assert refused.status_code == 503
    assert says_when_to_come_back(refused.headers)
    assert refused.json()["code"] == "store_unavailable"
