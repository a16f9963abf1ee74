"""`cuepost listen` is stopped, suspended, cut off and killed, and so is the service.

Each event arrives, in the order of the stream, with a valid signature.
"""

import os
import random
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa

from cuepost.adapters.storage.tables import events
from cuepost_receiver import verify
from tests.faults.breaking_wire import BreakingWire
from tests.faults.harness import Harness, harness
from tests.support.listen_process import ListenProcess
from tests.support.recording_receiver import RecordingReceiver
from tests.support.service_process import ServiceProcess
from tests.support.store_rows import AnyStore, rows

EVENTS_BETWEEN_FAULTS = 10
EVENTS_TO_A_FAULT = 20
PACE_SECONDS = 0.3
MOMENT_SECONDS = 0.3
pytestmark = pytest.mark.timeout(3_600)


@pytest.fixture
def wanted() -> int:
    """How many events; the full promise is for 1,000."""
    return int(os.environ.get("CUEPOST_TEST_LISTEN_EVENTS", "120"))


class SimulationState:
    """A service, a listener behind a wire that breaks, and a receiver that answers always."""

    def __init__(self, it: Harness, wire: BreakingWire, listener: ListenProcess) -> None:
        self._it = it
        self._wire = wire
        self._pause = threading.Event()
        self.listener = listener
        self.service = ServiceProcess(it.settings)

    def faults(self) -> list[Callable[[], None]]:
        return [
            self.listener_stopped,
            self.listener_killed,
            self.listener_suspended,
            self.cut_off,
            self.service_killed,
            self.service_stopped,
            self.service_suspended,
        ]

    def listener_stopped(self) -> None:
        assert self.listener.end() == 0
        self._pause.wait(MOMENT_SECONDS)
        self.listener.start()

    def listener_killed(self) -> None:
        self.listener.end(signal.SIGKILL)
        self.listener.start()

    def listener_suspended(self) -> None:
        self.listener.send_signal(signal.SIGSTOP)
        self._pause.wait(MOMENT_SECONDS)
        self.listener.send_signal(signal.SIGCONT)

    def cut_off(self) -> None:
        self._wire.cut()

    def service_killed(self) -> None:
        self.service.kill()
        self._serve_again()

    def service_stopped(self) -> None:
        assert self.service.stop().code == 0
        self._serve_again()

    def service_suspended(self) -> None:
        self.service.send_signal(signal.SIGSTOP)
        self._pause.wait(MOMENT_SECONDS)
        self.service.send_signal(signal.SIGCONT)

    def _serve_again(self) -> None:
        self.service.__exit__(None)
        self.service = ServiceProcess(self._it.settings)

    def close(self) -> None:
        self.service.__exit__(None)
        if self.listener.is_running:
            self.listener.end(signal.SIGKILL)


@contextmanager
def scene(it: Harness, receiver: RecordingReceiver, folder: Path) -> Iterator[SimulationState]:
    with BreakingWire(int(it.settings["PORT"])) as wire:
        target = receiver.url("/local")
        opened = SimulationState(
            it, wire, ListenProcess(wire.url, it.api_user.keys.api, target, folder)
        )
        try:
            yield opened
        finally:
            opened.close()


def test_on_an_embedded_store(sqlite_settings: dict[str, str], tmp_path: Path, wanted: int) -> None:
    with harness(sqlite_settings, endpoints=0) as it, RecordingReceiver() as local:
        disturb(it, local, tmp_path, wanted)


def test_on_postgres(postgres_settings: dict[str, str], tmp_path: Path, wanted: int) -> None:
    with harness(postgres_settings, endpoints=0) as it, RecordingReceiver() as local:
        disturb(it, local, tmp_path, wanted)


def disturb(it: Harness, local: RecordingReceiver, folder: Path, wanted: int) -> None:
    chance = random.Random(wanted)
    with scene(it, local, folder) as on:
        on.listener.start()
        on.listener.wait_until(lambda: bool(on.listener.lines("listening")))
        with it.load(pace=PACE_SECONDS) as load:
            faults: list[Callable[[], None]] = []
            done = 0
            while len(load.acknowledged) < wanted or done < fewest_faults(wanted, on):
                faults = faults or chance.sample(on.faults(), len(on.faults()))
                faults.pop()()
                done += 1
                load.wait_for(EVENTS_BETWEEN_FAULTS)
            load.stop()
        assert load.unexpected == []
        every = it.ask(stored_events)
        assert load.acknowledged <= every
        require_all(every, local, on.listener)


def fewest_faults(wanted: int, on: SimulationState) -> int:
    """Each kind at least once."""
    return max(len(on.faults()), wanted // EVENTS_TO_A_FAULT)


def require_all(every: set[str], local: RecordingReceiver, listener: ListenProcess) -> None:
    listener.wait_until(lambda: every <= set(positions_in(listener)))
    assert listener.end() == 0
    assert listener.complaints == ""
    [secret] = {line["secret"] for line in listener.lines("listening")}
    for each in local.seen():
        verify(each.body, each.headers, [secret], now=each.at)
    arrived = list(dict.fromkeys(each.event_id for each in local.seen()))
    assert set(arrived) == every
    positions = positions_in(listener)
    assert [positions[event_id] for event_id in arrived] == list(range(1, len(every) + 1))


def positions_in(listener: ListenProcess) -> dict[str, int]:
    return {line["eventId"]: line["position"] for line in listener.lines("forwarded")}


async def stored_events(store: AnyStore) -> set[str]:
    return {str(row.id) for row in await rows(store, sa.select(events.c.id))}
