"""Tools for tests: a virtual clock, repeatable ids and randomness, scripted receivers."""

import asyncio
import hashlib
import heapq
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from uuid import UUID

from cuepost.domain.access import ACCOUNT_SCOPES, SERVICE_SCOPES, Account, Caller, Interface
from cuepost.domain.attempt import Outcome, Timings, TlsFault
from cuepost.domain.instants import compose, to_millis
from cuepost.domain.project import Origin, Project, ProjectKind, ProjectStatus, Stage
from cuepost.ports.system import Clock
from cuepost.ports.transport import Exchange, Headers, Request

START = datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)


class VirtualClock:
    """A clock that moves only when `advance` or `jump` is called, and then wakes waiting tasks.

    `monotonic` starts at 0.
    """

    def __init__(self, start: datetime = START) -> None:
        self._start = self._now = start
        self._order = count()
        self._waiting: list[tuple[datetime, int, asyncio.Future[None]]] = []

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return (self._now - self._start).total_seconds()

    def restart(self) -> None:
        """Set the clock back to the start; only allowed while no task waits."""
        self._waiting = [each for each in self._waiting if not each[2].done()]
        assert not self._waiting
        self._now = self._start

    def advance(self, seconds: float = 0, **more: float) -> None:
        by = timedelta(seconds=seconds, **more)
        assert by >= timedelta(0), "a virtual clock cannot be advanced by a negative time"
        self._now += by
        while self._waiting and self._waiting[0][0] <= self._now:
            _, _, woken = heapq.heappop(self._waiting)
            if not woken.done():
                woken.set_result(None)

    def jump(self) -> bool:
        """Advance to the next time that a task waits for; return False if none waits."""
        while self._waiting and self._waiting[0][2].done():
            heapq.heappop(self._waiting)
        if not self._waiting:
            return False
        due, _, woken = heapq.heappop(self._waiting)
        self._now = max(self._now, due)
        woken.set_result(None)
        return True

    async def wait(self, seconds: float) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        due = self._now + timedelta(seconds=seconds)
        if seconds > 0:
            # `datetime` counts microseconds; a shorter wait would end without time passing.
            due = max(due, self._now + timedelta(microseconds=1))
        heapq.heappush(self._waiting, (due, next(self._order), woken))
        await woken

    async def wait_for(self, event: asyncio.Event, seconds: float) -> bool:
        async with asyncio.TaskGroup() as race:
            timer = race.create_task(self.wait(seconds))
            waiter = race.create_task(event.wait())
            await asyncio.wait([timer, waiter], return_when=asyncio.FIRST_COMPLETED)
            timer.cancel()
            waiter.cancel()
        return event.is_set()


class SequentialIds:
    """Version 7 ids that are the same in every run."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def __call__(self, at: datetime) -> UUID:
        return compose(to_millis(at), next(self._numbers))


class RepeatableEntropy:
    """Bytes that differ in each call and are the same in every run."""

    def __init__(self, seed: str = "cuepost") -> None:
        self._seed = seed
        self._calls = count()

    def __call__(self, count: int) -> bytes:
        label = f"{self._seed}:{next(self._calls)}".encode()
        return hashlib.shake_256(label).digest(count)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a receiver does: it answers with a status, or causes a fault, after `seconds`."""

    status: int | None = 200
    fault: Outcome | None = None
    seconds: float = 0.0
    headers: Headers = ()
    body: bytes = b""
    tls_fault: TlsFault | None = None


# The receiver accepts the request and never answers.
HANGS = Answer(status=None, fault=Outcome.TIMEOUT, seconds=float("inf"))


@dataclass(slots=True)
class Sent:
    """A request, when it was sent, and its answer; `ended_at` is None while it is in flight."""

    at: datetime
    request: Request
    answer: Answer
    ended_at: datetime | None = None

    def header(self, name: str) -> str:
        return dict(self.request.headers)[name]


class ScriptedTransport:
    """A Transport without a network: it answers by a script and keeps the requests."""

    def __init__(self, clock: Clock, script: Callable[[Request], Answer] | None = None) -> None:
        self._clock = clock
        self._script = script or (lambda _: Answer())
        self._next: dict[str, deque[Answer]] = defaultdict(deque)
        self._in_flight: Counter[str] = Counter()
        self.sent: list[Sent] = []
        self.most_in_flight: Counter[str] = Counter()

    def will(self, url: str, *answers: Answer | Outcome | int) -> None:
        """Set the answers to the next requests to this URL; the script answers later ones."""
        self._next[url] += [_answer(each) for each in answers]

    def start(self, request: Request, done: Callable[[Exchange | None], None]) -> bool:
        """There are no connections, so none is open."""
        return False

    async def send(self, request: Request) -> Exchange:
        return await self.answered(self.begin(request))

    def begin(self, request: Request) -> Sent:
        """Send the request; the caller then awaits `answered`."""
        url = request.url.text
        answer = self._next[url].popleft() if self._next[url] else self._script(request)
        sent = Sent(self._clock.now(), request, answer)
        self.sent.append(sent)
        self._in_flight[url] += 1
        self.most_in_flight[url] = max(self.most_in_flight[url], self._in_flight[url])
        return sent

    async def answered(self, sent: Sent) -> Exchange:
        try:
            return await self._exchanged(sent.request, sent.answer)
        finally:
            self.end(sent)

    def end(self, sent: Sent) -> None:
        if sent.ended_at is None:
            self._in_flight[sent.request.url.text] -= 1
            sent.ended_at = self._clock.now()

    async def _exchanged(self, request: Request, answer: Answer) -> Exchange:
        took = min(answer.seconds, request.timeout_seconds)
        if took > 0:
            await self._clock.wait(took)
        if answer.seconds > request.timeout_seconds:
            return Exchange(took * 1000, Timings(), fault=Outcome.TIMEOUT)
        return Exchange(
            took * 1000,
            Timings(),
            fault=answer.fault,
            status=answer.status if answer.fault is None else None,
            headers=answer.headers,
            body=answer.body,
            tls_fault=answer.tls_fault,
        )


def _answer(told: Answer | Outcome | int) -> Answer:
    if isinstance(told, Outcome):
        return Answer(status=None, fault=told)
    return Answer(status=told) if isinstance(told, int) else told


@dataclass(frozen=True, slots=True)
class Factory:
    """Domain objects with default values; a test names the values that matter to it."""

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
            "exported_at": now if changed.get("status") is ProjectStatus.COMPLETED else None,
        }
        return Project(**(values | changed))  # type: ignore[arg-type]  # named by the test

    @staticmethod
    def owner(account_id: UUID) -> Caller:
        return Caller(Interface.REST, "key:test", account_id, ACCOUNT_SCOPES, webhooks_enabled=True)

    @staticmethod
    def pipeline() -> Caller:
        return Caller(Interface.REST, "key:pipeline", None, SERVICE_SCOPES)
