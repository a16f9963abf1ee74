"""A service under load with a receiver beside it, and what became of every event."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import sqlalchemy as sa

from cuepost.adapters.storage.pooler import Pooler
from cuepost.adapters.storage.postgres import PostgresStore
from cuepost.adapters.storage.sqlite import SqliteStore
from cuepost.adapters.storage.tables import queue
from cuepost.adapters.system_clock import SystemClock
from tests.e2e.first_steps import ApiUser, keys_in
from tests.support.code_versions import PRESENT, CodeVersion
from tests.support.history_checker import History, Seen, StoredDelivery
from tests.support.load import Load
from tests.support.recording_receiver import RecordingReceiver
from tests.support.service_process import free_port
from tests.support.store_rows import AnyStore, rows
from tests.support.stored_history import STORED, stored_deliveries

T = TypeVar("T")

REPORTERS = 2
PROJECTS_EACH = 3
MASTER_KEY = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
WRITTEN_WITHIN_SECONDS = 1.0
# Dead workers are noticed after their lease of ten seconds.
SETTLING_SECONDS = 40.0


@dataclass(slots=True)
class Harness:
    """`leased_at_faults` are deliveries that were with a worker when it was killed.

    `outages` are the times, from and until, in which the store could not be reached.
    """

    settings: dict[str, str]
    receiver: RecordingReceiver
    api_user: ApiUser
    paths: Sequence[str]
    endpoints: dict[str, tuple[str, str]] = field(default_factory=dict)
    projects: list[list[str]] = field(default_factory=list)
    leased_at_faults: set[str] = field(default_factory=set)
    outages: list[tuple[float, float]] = field(default_factory=list)

    def load(self, *ports: int, pace: float = 0.03) -> Load:
        """Reports to the services at these ports, or at the only one; they must run by now."""
        if not self.endpoints:
            self._populate()
        urls = [f"http://127.0.0.1:{port}" for port in ports] or [self.api_user.base_url]
        return Load(urls, self.api_user.keys.service, self.projects, pace)

    def _populate(self) -> None:
        for path in self.paths:
            made = self.api_user.post("/v1/webhooks", {"url": self.receiver.url(path)})
            self.endpoints[path] = (made["id"], made["secret"])
        self.projects = [
            [
                self.api_user.post("/v1/projects", {"name": "Cut"})["id"]
                for _ in range(PROJECTS_EACH)
            ]
            for _ in range(REPORTERS)
        ]
        for project_id in (each for some in self.projects for each in some):
            self.api_user.report(project_id, "processing")

    def note_leases(self) -> None:
        """Right after a fault: what may be sent once more because of it."""
        self.leased_at_faults |= self.ask(leased)

    def ask(self, question: Callable[[AnyStore], Awaitable[T]]) -> T:
        return asyncio.run(asked(self.settings, question))

    def wait_for_answer(self, question: Callable[[AnyStore], Awaitable[T]], wanted: T) -> None:
        async def repeatedly(store: AnyStore) -> T:
            deadline = time.monotonic() + SETTLING_SECONDS
            while (answer := await question(store)) != wanted and time.monotonic() < deadline:
                await SystemClock().wait(0.02)
            return answer

        assert self.ask(repeatedly) == wanted

    def wait_until_settled(self, seconds: float = SETTLING_SECONDS) -> float:
        """Until nothing is left to send; how long it took."""
        began = time.monotonic()
        left = asyncio.run(asked(self.settings, lambda store: drained(store, began + seconds)))
        assert not left, f"{len(left)} deliveries are not through: {left[:3]}"
        return time.monotonic() - began

    def history(self, load: Load) -> History:
        paths = {path: webhook_id for path, (webhook_id, _) in self.endpoints.items()}
        seen = [
            Seen(each.at, paths[each.path], each.headers, each.body, each.status)
            for each in self.receiver.seen()
        ]
        return History(
            acknowledged=set(load.acknowledged),
            seen=seen,
            deliveries=self.ask(stored),
            secrets={webhook_id: [secret] for webhook_id, secret in self.endpoints.values()},
        )

    def require_nothing_lost(self, load: Load) -> History:
        history = self.history(load)
        assert history.broken_promises() == []
        assert load.unexpected == []
        assert load.acknowledged, "nothing was acknowledged, so nothing is proved"
        sent_to = Counter(each.event_id for each in history.deliveries)
        assert {sent_to[event_id] for event_id in load.acknowledged} == {len(self.endpoints)}
        assert {each.status for each in history.deliveries} == {"delivered"}
        assert repeated(history) <= self.leased_at_faults | self._unwritten(history)
        return history

    def _unwritten(self, history: History) -> set[str]:
        """Sent so shortly before or in an outage that no one could write it down."""
        sent: dict[tuple[str, str], float] = {}
        for seen in history.seen:
            sent.setdefault((seen.webhook_id, seen.headers["webhook-id"]), seen.at)
        return {
            each.id
            for each in history.deliveries
            for began, ended in self.outages
            if began - WRITTEN_WITHIN_SECONDS < sent[each.webhook_id, each.event_id] < ended
        }


def repeated(history: History) -> set[str]:
    """Deliveries that their receiver saw more than once."""
    counts = Counter((seen.webhook_id, seen.headers["webhook-id"]) for seen in history.seen)
    return {each.id for each in history.deliveries if counts[each.webhook_id, each.event_id] > 1}


@contextmanager
def harness(
    settings: Mapping[str, str],
    *,
    endpoints: int = 3,
    delay: float = 0.01,
    set_up: CodeVersion = PRESENT,
) -> Iterator[Harness]:
    """Set up on an empty store; the first load makes endpoints and projects."""
    with RecordingReceiver(delay) as receiver:
        whole = dict(settings) | {
            "PORT": settings.get("PORT") or str(free_port()),
            "MASTER_KEY": MASTER_KEY,
            "RECEIVER_HTTP": "true",
            "RECEIVER_NETWORKS": "127.0.0.0/8",
            "RECEIVER_PORTS": str(receiver.port),
            "RATE_LIMIT": "1000000",
        }
        made = set_up.run(whole, "setup")
        keys = keys_in(made.stdout)
        assert keys is not None, made.stderr
        api_user = ApiUser(f"http://127.0.0.1:{whole['PORT']}", keys)
        yield Harness(whole, receiver, api_user, [f"/hook/{each}" for each in range(endpoints)])


async def asked(settings: Mapping[str, str], question: Callable[[AnyStore], Awaitable[T]]) -> T:
    async with opened(settings) as store:
        return await question(store)


@asynccontextmanager
async def opened(settings: Mapping[str, str]) -> AsyncIterator[AnyStore]:
    clock = SystemClock()
    store: AnyStore
    if "DATABASE_URL" in settings:
        pooler = Pooler(settings.get("DATABASE_POOLER", "none"))
        store = PostgresStore(settings["DATABASE_URL"], pooler=pooler)
    else:
        store = SqliteStore(Path(settings["DATA_DIR"]) / "cuepost.sqlite3", clock)
        await store.open()
    try:
        yield store
    finally:
        await store.close()


async def leased(store: AnyStore) -> set[str]:
    found = await rows(store, sa.select(queue.c.id).where(queue.c.worker.is_not(None)))
    return {str(row.id) for row in found}


@dataclass(frozen=True, slots=True)
class Queued:
    waiting: int
    leased: int


async def queued(store: AnyStore) -> Queued:
    workers = [row.worker for row in await rows(store, sa.select(queue.c.worker))]
    return Queued(waiting=workers.count(None), leased=len(workers) - workers.count(None))


async def drained(store: AnyStore, deadline: float) -> Sequence[sa.Row[tuple[object, ...]]]:
    clock = SystemClock()
    waiting = sa.select(queue.c.id, queue.c.status, queue.c.worker, queue.c.due_at)
    while left := await rows(store, waiting.limit(1_000)):
        if time.monotonic() > deadline:
            return left
        await clock.wait(0.1)
    return []


async def stored(store: AnyStore) -> list[StoredDelivery]:
    found = {table.name: await rows(store, sa.select(table)) for table in STORED}
    return stored_deliveries(found)
