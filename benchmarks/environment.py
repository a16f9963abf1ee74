"""The environment of a scenario: receiver, populated store, running services, verification."""

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from benchmarks.checkout import OURS, Checkout, StoreAccess
from benchmarks.feeding import Fed, batches, feed
from benchmarks.population import Populated
from benchmarks.processes import cpu_seconds, pin, resident_megabytes
from benchmarks.proof import require_kept, require_no_stall
from benchmarks.receiving import TIMEOUT_SECONDS, Receiver, arrivals, read, receiving
from benchmarks.stores import StoreChoice
from tests.support.history_checker import History
from tests.support.service_process import ServiceProcess, free_port

MASTER_KEY = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU seconds so far."""

    app: float
    store: float
    receiver: float

    def since(self, before: "Usage") -> "Usage":
        return Usage(
            self.app - before.app, self.store - before.store, self.receiver - before.receiver
        )


@dataclass(slots=True)
class Product:
    """cuepost running on a populated store."""

    checkout: Checkout
    folder: Path
    settings: dict[str, str]
    store: StoreChoice
    rows: StoreAccess
    receiver: Receiver
    populated: Populated
    module: str = "cuepost"
    services: list[ServiceProcess] = field(default_factory=list)
    acknowledged: set[str] = field(default_factory=set)
    began: float = field(default_factory=time.time)

    @property
    def pids(self) -> list[int]:
        return [service.pid for service in self.services]

    @property
    def memory(self) -> float:
        return resident_megabytes(self.pids)

    def usage(self) -> Usage:
        return Usage(cpu_seconds(self.pids), self.store.cpu, self.receiver.cpu)

    def start(self, halves: Sequence[str] | None = None, cores: Sequence[int] = ()) -> None:
        for half in self.store.halves if halves is None else halves:
            log = self.folder / f"{half}-{len(self.services)}.log"
            service = self.checkout.service(self.settings, half, log, module=self.module)
            self.services.append(service)
            if cores:
                pin([service.pid], cores)

    def stop(self) -> None:
        for service in self.services:
            with service:
                assert service.stop().code == 0
        self.services.clear()

    def kill(self) -> None:
        while self.services:
            with self.services.pop() as service:
                service.kill()

    def feed(
        self,
        projects: Sequence[str],
        batch: int = 1,
        *,
        connections: int = 4,
        rate: float = 0.0,
        by_chance: bool = False,
        cores: Sequence[int] = (),
    ) -> Fed:
        fed = feed(
            self.settings["PORT"],
            self.populated.service_key,
            batches(projects, batch),
            connections=connections,
            rate=rate,
            by_chance=by_chance,
            cores=cores,
        )
        self.acknowledged |= fed.acknowledged
        return fed

    def wait_for_events(self, events: set[str]) -> dict[str, float]:
        """When each of them arrived; waits until all have, and ignores other events."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while missing := events - (found := arrivals(self.receiver.look())).keys():
            assert time.monotonic() < deadline, f"{len(missing)} events did not arrive"
            time.sleep(0.5)
        return found

    def wait_until_settled(self) -> None:
        """Waits until everything is recorded; CPU counts until then."""
        self.rows.wait_until_settled(self.settings, self._accounts(self._ok_paths()))

    def proved(self) -> History:
        """Ends everything and verifies the delivery guarantees.

        Checks endpoints that answer at once, and deliveries created after the store was populated:
        deliveries that hang or wait on purpose have not ended when a scenario has.
        """
        self.wait_until_settled()
        for service in self.services:
            require_no_stall(service.said)
        if len(self._ok_paths()) == len(self.populated.webhook_of):
            self.stop()
        self.kill()
        self.receiver.end()
        paths, webhook_of = self._ok_paths(), self.populated.webhook_of
        watched = {webhook_of[path] for path in paths}
        read_all = (read(at, raw, webhook_of) for at, raw in self.receiver.seen)
        history = History(
            acknowledged=self.acknowledged,
            seen=[each for each in read_all if each.webhook_id in watched],
            deliveries=self.rows.stored_since(self.settings, self._accounts(paths), self.began),
            secrets={key: [secret] for key, secret in self.populated.secret_of.items()},
        )
        require_kept(history)
        return history

    def _ok_paths(self) -> list[str]:
        return [path for path in self.populated.webhook_of if path.startswith("/ok")]

    def _accounts(self, paths: Sequence[str]) -> list[UUID]:
        return [self.populated.account_of[path] for path in paths]


@contextmanager
def product(
    store: StoreChoice,
    *,
    paths: Sequence[str] = ("/ok",),
    projects: int = 0,
    halves: Sequence[str] | None = None,
    tls: bool = False,
    keep_alive: bool = True,
    settings: Mapping[str, str] | None = None,
    checkout: Checkout = OURS,
    module: str = "cuepost",
) -> Iterator[Product]:
    """One account for each path, with an endpoint there and projects that are about to complete.

    The receiver has two processes if each request opens a new connection, because accepting one
    costs nearly as much as opening it.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cuepost-bench-")))
        receiver = stack.enter_context(
            receiving(folder, tls=tls, keep_alive=keep_alive, processes=1 if keep_alive else 2)
        )
        chosen = {
            **_settings(folder, receiver),
            **stack.enter_context(store.fresh()),
            **(settings or {}),
        }
        urls = {path: receiver.url(path) for path in paths}
        rows = stack.enter_context(checkout.store())
        populated = rows.populate(chosen, urls, projects)
        it = Product(checkout, folder, chosen, store, rows, receiver, populated, module)
        stack.callback(it.kill)
        it.start(halves)
        yield it


def _settings(folder: Path, receiver: Receiver) -> dict[str, str]:
    settings = {
        "DATA_DIR": str(folder / "data"),
        "PORT": str(free_port()),
        "MASTER_KEY": MASTER_KEY,
        "RECEIVER_HTTP": "true",
        "RECEIVER_NETWORKS": "127.0.0.0/8",
        "RECEIVER_PORTS": str(receiver.port),
    }
    return settings | ({"EXTRA_CA_FILE": receiver.trusted} if receiver.trusted else {})
