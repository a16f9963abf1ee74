"""Several processes of each kind at one PostgreSQL, under load."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import sqlalchemy as sa

from cuepost.adapters.storage.tables import lanes
from tests.faults.harness import Harness, harness
from tests.support.service_process import Ended, ServiceProcess, free_port
from tests.support.store_rows import AnyStore, rows

CAP = 2


async def holders(store: AnyStore) -> int:
    return len(await rows(store, sa.select(lanes.c.worker_id).distinct()))


def test_two_of_each_hold_the_cap_and_a_third_worker_doubles_nothing(
    postgres_settings: dict[str, str],
) -> None:
    with sharing(postgres_settings) as (it, ports), it.load(*ports) as load:
        load.wait_for(30)
        with ServiceProcess(it.settings, "worker") as third:
            load.wait_for(30)
            assert third.stop() == Ended(0, "")
        load.wait_for(30)
        load.stop()
        it.wait_until_settled()

        it.require_nothing_lost(load)
        assert set(it.receiver.most_at_once.values()) == {CAP}


def test_workers_share_busy_endpoints(postgres_settings: dict[str, str]) -> None:
    with sharing(postgres_settings) as (it, ports), it.load(*ports):
        it.wait_for_answer(holders, 2)


@contextmanager
def sharing(settings: dict[str, str]) -> Iterator[tuple[Harness, Sequence[int]]]:
    with harness(settings | {"ENDPOINT_CONCURRENCY": str(CAP)}, endpoints=8, delay=0.02) as it:
        ports = (int(it.settings["PORT"]), free_port())
        with (
            ServiceProcess(it.settings, "api"),
            ServiceProcess(it.settings | {"PORT": str(ports[1])}, "api"),
            ServiceProcess(it.settings, "worker"),
            ServiceProcess(it.settings, "worker"),
        ):
            yield it, ports
