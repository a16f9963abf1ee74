"""kill -9 under load: all that was acknowledged arrives; only what the dead held comes twice."""

import pytest

from tests.faults.harness import Harness, harness
from tests.support.load import Load
from tests.support.service_process import ServiceProcess

EVENTS_PER_ROUND = 20
pytestmark = pytest.mark.timeout(3_600)


def test_serve_on_an_embedded_store(sqlite_settings: dict[str, str], kills: int) -> None:
    with harness(sqlite_settings) as it:
        kill_serve(it, kills)


def test_serve_on_postgres(postgres_settings: dict[str, str], kills: int) -> None:
    with harness(postgres_settings) as it:
        kill_serve(it, kills)


def kill_serve(it: Harness, kills: int) -> None:
    service = ServiceProcess(it.settings)
    with it.load() as load:
        for _ in range(kills):
            with service:
                load.wait_for(EVENTS_PER_ROUND)
                service.kill()
            it.note_leases()
            service = ServiceProcess(it.settings)
        with service:
            load.wait_for(EVENTS_PER_ROUND)
            load.stop()
            it.wait_until_settled()
    it.require_nothing_lost(load)


def test_api_and_workers_apart_on_postgres(postgres_settings: dict[str, str], kills: int) -> None:
    with harness(postgres_settings) as it:
        api = ServiceProcess(it.settings, "api")
        with it.load() as load:
            worker = killed_in_rounds(it, load, ServiceProcess(it.settings, "worker"), kills)
            # The leases of the dead workers expire during this time.
            api = killed_in_rounds(it, load, api, kills)
            with api, worker:
                load.wait_for(EVENTS_PER_ROUND)
                load.stop()
                it.wait_until_settled()
        it.require_nothing_lost(load)


def killed_in_rounds(
    it: Harness, load: Load, process: ServiceProcess, kills: int
) -> ServiceProcess:
    """The successor of the last one that was killed."""
    for _ in range(kills):
        with process:
            load.wait_for(EVENTS_PER_ROUND)
            process.kill()
        if process.half != "api":
            it.note_leases()
        process = ServiceProcess(it.settings, process.half)
    return process
