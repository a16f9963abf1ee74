"""The scene of a simulation: who is there, how receivers behave, and a store that may fail."""

import random
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeVar
from uuid import UUID

from cuepost.domain.attempt import Outcome
from cuepost.domain.project import ProjectStatus
from cuepost.ports.store import StoreUnavailable
from cuepost.ports.transport import Request
from cuepost.testing import HANGS, Answer, ScriptedTransport
from tests.simulation.ledger import Ledger
from tests.support.stage import DAY, HOUR, Stage
from tests.support.watched_store import never

T = TypeVar("T")

HORIZONS = (HOUR, DAY, 30 * DAY)
MANNERS = ("well", "well", "failing", "flaky", "hanging", "slow", "lost answers")


@dataclass(slots=True)
class Scene:
    """`chance` decides what is done, `fate` how receivers answer."""

    seed: int
    stage: Stage
    ledger: Ledger = field(default_factory=Ledger)
    trace: list[str] = field(default_factory=list)
    manners: dict[str, str] = field(default_factory=dict)
    endpoints: dict[UUID, bool] = field(default_factory=dict)
    projects: dict[UUID, ProjectStatus] = field(default_factory=dict)
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
        self.attempts = self.chance.choice((1, 3, 64))
        self.stage.transport = ScriptedTransport(self.stage.clock, self._answer)
        self.stage.jitter = self.fate.random

    @property
    def now(self) -> datetime:
        return self.stage.clock.now()

    def note(self, what: object) -> None:
        self.trace.append(f"{self.now:%d %H:%M:%S.%f} {what} {len(self.stage.sent)}")

    def some_endpoint(self) -> UUID:
        return self.chance.choice(list(self.endpoints))

    def some_project(self) -> UUID:
        return self.chance.choice(list(self.projects))

    def new_url(self) -> str:
        url = f"https://hooks{len(self.manners)}.example.com/cue"
        self.manners[url] = self.chance.choice(MANNERS)
        return url

    async def surely(self, action: Callable[[], Awaitable[T]]) -> T:
        """Like a patient caller: while the store is away, the same again a little later."""
        while True:
            try:
                return await action()
            except StoreUnavailable:
                await self.stage.clock.wait(1)

    @contextmanager
    def store_whole(self) -> Iterator[None]:
        """Around what must not be repeated, and of which the answer is needed."""
        watch = self.stage.store.watch
        fails, loses = watch.fails, watch.loses
        watch.fails = watch.loses = never
        try:
            yield
        finally:
            watch.fails, watch.loses = fails, loses

    async def change_manners(self) -> None:
        self.manners[self.chance.choice(list(self.manners))] = self.chance.choice(MANNERS)

    async def break_store(self) -> None:
        """A few operations fail one after the other, or some answers to commits get lost."""
        watch, chance = self.stage.store.watch, self.chance
        if chance.random() < 0.3 and self.stage.is_embedded:
            lost = {watch.commits + chance.randrange(1, 8) for _ in range(2)}
            watch.loses = lambda number: number in lost
            return
        first = watch.operations + chance.randrange(1, 40)
        last = first + chance.choice((1, 1, 3, 12))
        watch.fails = lambda number: first <= number < last

    def _answer(self, request: Request) -> Answer:
        manner, chance = self.manners[request.url.text], self.fate.random()
        if manner == "hanging":
            return HANGS
        if manner == "slow":
            return Answer(seconds=round(chance * 20, 3))
        if manner == "lost answers" and chance < 0.5:
            return Answer(status=None, fault=Outcome.CONNECT_ERROR, seconds=0.25)
        if manner == "failing" or (manner == "flaky" and chance < 0.5):
            return Answer(status=self.fate.choice((301, 404, 500, 503)), seconds=0.05)
        return Answer(status=self.fate.choice((200, 204)), seconds=self.fate.choice((0.0, 0.125)))
