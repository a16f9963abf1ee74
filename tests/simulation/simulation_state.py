"""The scene of a simulation: who is there, how receivers behave, and a store that may fail."""

import random
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeVar
from uuid import UUID

from cuepost.domain.access import Caller
from cuepost.domain.attempt import Outcome
from cuepost.domain.project import ProjectStatus
from cuepost.ports.store import StoreUnavailable
from cuepost.ports.transport import Request
from cuepost.testing import HANGS, Answer, ScriptedTransport
from tests.simulation.ledger import Ledger
from tests.support.engine_harness import DAY, HOUR, EngineHarness
from tests.support.watched_store import never

T = TypeVar("T")

HORIZONS = (HOUR, DAY, 30 * DAY)
BEHAVIOURS = ("well", "well", "failing", "flaky", "hanging", "slow", "lost answers")


@dataclass(slots=True)
class SimulationState:
    """`chance` decides what is done, `fate` how receivers answer.

    `clocks` is what the service's clock said when each request was sent.
    """

    seed: int
    engine: EngineHarness
    workers: int = 1
    ledger: Ledger = field(default_factory=Ledger)
    trace: list[str] = field(default_factory=list)
    behaviours: dict[str, str] = field(default_factory=dict)
    endpoints: dict[UUID, bool] = field(default_factory=dict)
    projects: dict[UUID, ProjectStatus] = field(default_factory=dict)
    callers: dict[str, Caller] = field(default_factory=dict)
    clocks: list[datetime] = field(default_factory=list)
    chance: random.Random = field(init=False)
    fate: random.Random = field(init=False)
    horizon: timedelta = field(init=False)
    cap: int = field(init=False)
    attempts: int = field(init=False)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.fate = random.Random(f"fate {self.seed}")
        self.horizon = self.chance.choice(HORIZONS)
        self.cap = self.chance.choice((1, 2, 8))
        self.attempts = self.chance.choice((2, 5, 64))
        self.engine.transport = ScriptedTransport(self.engine.clock.steady, self._answer)
        self.engine.jitter = self.fate.random

    @property
    def shared(self) -> bool:
        """Whether other workers may use the store as well."""
        return self.workers > 1 or not self.engine.is_embedded

    @property
    def now(self) -> datetime:
        """As the service sees it."""
        return self.engine.clock.now()

    @property
    def really(self) -> datetime:
        """Without whatever was done to the clock."""
        return self.engine.clock.steady.now()

    def note(self, what: object) -> None:
        self.trace.append(f"{self.really:%d %H:%M:%S.%f} {what} {len(self.engine.sent)}")

    async def move_in(self) -> None:
        """Two accounts that know nothing of one another."""
        for caller in (self.engine.harness.owner, await self.engine.harness.new_owner()):
            self.callers[str(caller.account)] = caller

    def some_caller(self) -> Caller:
        return self.chance.choice(list(self.callers.values()))

    def owner_of(self, identifier: UUID) -> Caller:
        return self.callers[self.ledger.owners[str(identifier)]]

    def some_endpoint(self) -> UUID:
        return self.chance.choice(list(self.endpoints))

    def some_project(self) -> UUID:
        return self.chance.choice(list(self.projects))

    def new_url(self) -> str:
        url = f"https://hooks{len(self.behaviours)}.example.com/cue"
        self.behaviours[url] = self.chance.choice(BEHAVIOURS)
        return url

    async def surely(self, action: Callable[[], Awaitable[T]]) -> T:
        """Like a patient caller: while the store is away, the same again a little later."""
        while True:
            try:
                return await action()
            except StoreUnavailable:
                await self.engine.clock.wait(1)

    @contextmanager
    def store_whole(self) -> Iterator[None]:
        """ScanProgress what must not be repeated, and of which the answer is needed."""
        watch = self.engine.store.watch
        faults = watch.fails, watch.refuses, watch.loses
        self.fix_store()
        try:
            yield
        finally:
            watch.fails, watch.refuses, watch.loses = faults

    async def change_behaviour(self) -> None:
        self.behaviours[self.chance.choice(list(self.behaviours))] = self.chance.choice(BEHAVIOURS)

    async def break_store(self) -> None:
        """Commits fail or their answers get lost, or operations fail: some, or all for a while."""
        watch, chance = self.engine.store.watch, self.chance
        possible = ["some", "all"]
        if self.engine.is_embedded:
            possible.append("commits")
            # Between a process and its own file no answer gets lost.
            possible += ["answers"] if self.shared else []
        kind = chance.choice(possible)
        commits = {watch.commits + chance.randrange(1, 8) for _ in range(2)}
        first = watch.operations + chance.randrange(1, 40)
        last = first + chance.choice((1, 1, 3, 12))
        back_at = self.really + timedelta(seconds=chance.choice((0.4, 3, 20)))
        if kind == "answers":
            watch.loses = commits.__contains__
        elif kind == "commits":
            watch.refuses = commits.__contains__
        elif kind == "some":
            watch.fails = lambda number: first <= number < last
        else:
            watch.fails = lambda number: number >= first and self.really < back_at

    def fix_store(self) -> None:
        watch = self.engine.store.watch
        watch.fails = watch.refuses = watch.loses = never

    def _answer(self, request: Request) -> Answer:
        self.clocks.append(self.now)
        behaviour, chance = self.behaviours[request.url.text], self.fate.random()
        if behaviour == "hanging":
            return HANGS
        if behaviour == "slow":
            return Answer(seconds=round(chance * 20, 3))
        if behaviour == "lost answers" and chance < 0.5:
            return Answer(status=None, fault=Outcome.CONNECT_ERROR, seconds=0.25)
        if behaviour == "failing" or (behaviour == "flaky" and chance < 0.5):
            return Answer(status=self.fate.choice((301, 404, 500, 503)), seconds=0.05)
        return Answer(status=self.fate.choice((200, 204)), seconds=self.fate.choice((0.0, 0.125)))
