"""For tests of cuepost and with cuepost: a clock that jumps, ids that repeat, factories."""

import asyncio
import hashlib
import heapq
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from uuid import UUID

from cuepost.domain.access import ACCOUNT_SCOPES, SERVICE_SCOPES, Account, Caller, Door
from cuepost.domain.ids import compose
from cuepost.domain.instants import to_millis
from cuepost.domain.project import Origin, Project, ProjectKind, ProjectStatus, Stage

START = datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)


class VirtualClock:
    """Stands still until it is told to go; whoever waits is woken when the time has come."""

    def __init__(self, start: datetime = START) -> None:
        self._now = start
        self._order = count()
        self._waiting: list[tuple[datetime, int, asyncio.Future[None]]] = []

    def now(self) -> datetime:
        return self._now

    def advance(self, seconds: float = 0, **more: float) -> None:
        self._now += timedelta(seconds=seconds, **more)
        while self._waiting and self._waiting[0][0] <= self._now:
            _, _, woken = heapq.heappop(self._waiting)
            if not woken.done():
                woken.set_result(None)

    async def wait(self, seconds: float) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        due = self._now + timedelta(seconds=seconds)
        heapq.heappush(self._waiting, (due, next(self._order), woken))
        await woken


class SequentialIds:
    """Version 7 ids that are the same at every run."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def __call__(self, at: datetime) -> UUID:
        return compose(to_millis(at), next(self._numbers))


class RepeatableEntropy:
    """Bytes that differ at each call and are the same at every run."""

    def __init__(self, seed: str = "cuepost") -> None:
        self._seed = seed
        self._calls = count()

    def __call__(self, count: int) -> bytes:
        label = f"{self._seed}:{next(self._calls)}".encode()
        return hashlib.shake_256(label).digest(count)


@dataclass(frozen=True, slots=True)
class Factory:
    """Domain objects with everything filled in; name what matters to the test."""

    ids: SequentialIds
    clock: VirtualClock

    def account(self, *, webhooks_enabled: bool = True) -> Account:
        now = self.clock.now()
        return Account(self.ids(now), "Test account", webhooks_enabled, now)

    def project(self, account_id: UUID, **changed: object) -> Project:
        now = self.clock.now()
        values: dict[str, object] = {
            "account_id": account_id,
            "id": self.ids(now),
            "name": "Trailer",
            "kind": ProjectKind.VIDEO,
            "origin": Origin.API,
            "status": ProjectStatus.QUEUED,
            "stage": Stage.PROCESSING,
            "access_expires_at": None,
            "created_at": now,
            "updated_at": now,
        }
        return Project(**(values | changed))  # type: ignore[arg-type]  # named by the test

    @staticmethod
    def owner(account_id: UUID) -> Caller:
        return Caller(Door.REST, "key:test", account_id, ACCOUNT_SCOPES, webhooks_enabled=True)

    @staticmethod
    def pipeline() -> Caller:
        return Caller(Door.REST, "key:pipeline", None, SERVICE_SCOPES)
