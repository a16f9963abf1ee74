"""Figures for charts, from the newest deliveries only, so that the cost does not grow."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from cuepost.domain.access import Caller, Scope
from cuepost.domain.attempt import Outcome
from cuepost.domain.delivery import DeliveryStatus
from cuepost.domain.ids import instant_of
from cuepost.ports.history import AttemptFigures, Outline
from cuepost.ports.store import Transaction
from cuepost.ports.system import Clock

DAY = timedelta(hours=24)
BARS = 24
IN_A_LIST = 50
ON_A_PAGE = 300


@dataclass(frozen=True, slots=True)
class Bar:
    """Deliveries that were created within one interval, by status."""

    since: datetime
    counts: Mapping[DeliveryStatus, int]

    @property
    def total(self) -> int:
        return sum(self.counts.values())


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures of the deliveries since `since`: the last day, or less if there are many."""

    since: datetime
    until: datetime
    bars: Sequence[Bar]
    counts: Mapping[DeliveryStatus, int]
    outcomes: Mapping[Outcome, int]
    classes: Mapping[str, int]
    p50_ms: float | None
    p95_ms: float | None

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def success_rate(self) -> float | None:
        """The share of delivered ones among delivered and failed ones."""
        delivered = self.counts.get(DeliveryStatus.DELIVERED, 0)
        ended = delivered + self.counts.get(DeliveryStatus.FAILED, 0)
        return delivered / ended if ended else None


@dataclass(frozen=True, slots=True)
class DeliveryFigures:
    clock: Clock

    async def of_endpoints(
        self, transaction: Transaction, caller: Caller, webhook_ids: Sequence[UUID]
    ) -> dict[UUID, Figures]:
        """For lists: only counts."""
        account_id = caller.require_webhooks(Scope.WEBHOOKS_READ)
        return {
            each: self._figures(
                await self._newest(transaction, account_id, each, IN_A_LIST), (), IN_A_LIST
            )
            for each in webhook_ids
        }

    async def of_endpoint(
        self, transaction: Transaction, caller: Caller, webhook_id: UUID
    ) -> Figures:
        account_id = caller.require_webhooks(Scope.WEBHOOKS_READ)
        found = await self._newest(transaction, account_id, webhook_id, ON_A_PAGE)
        attempts = await transaction.attempts.figures_of(account_id, [each.id for each in found])
        return self._figures(found, attempts, ON_A_PAGE)

    async def _newest(
        self, transaction: Transaction, account_id: UUID, webhook_id: UUID, most: int
    ) -> list[Outline]:
        since = self.clock.now() - DAY
        return await transaction.deliveries.outlines(account_id, webhook_id, since, most)

    def _figures(
        self,
        deliveries: Sequence[Outline],
        attempts: Sequence[AttemptFigures],
        most: int,
    ) -> Figures:
        until = self.clock.now()
        since = instant_of(deliveries[-1].id) if len(deliveries) == most else until - DAY
        counted = [each for each in attempts if each.outcome.counts]
        durations = sorted(each.duration_ms for each in counted)
        return Figures(
            since=since,
            until=until,
            bars=_bars(deliveries, since, until),
            counts=Counter(_shown(each) for each in deliveries),
            outcomes=Counter(each.outcome for each in counted),
            classes=Counter(class_of(each) for each in counted),
            p50_ms=_percentile(durations, 0.50),
            p95_ms=_percentile(durations, 0.95),
        )


def class_of(attempt: AttemptFigures) -> str:
    """`2xx` and so on, or `none` if there was no response."""
    return "none" if attempt.status is None else f"{attempt.status // 100}xx"


def _bars(deliveries: Sequence[Outline], since: datetime, until: datetime) -> list[Bar]:
    width = max((until - since) / BARS, timedelta(milliseconds=1))
    counts: list[Counter[DeliveryStatus]] = [Counter() for _ in range(BARS)]
    for delivery in deliveries:
        place = min(max((instant_of(delivery.id) - since) // width, 0), BARS - 1)
        counts[place][_shown(delivery)] += 1
    return [Bar(since + place * width, counted) for place, counted in enumerate(counts)]


def _shown(delivery: Outline) -> DeliveryStatus:
    """Charts show all live deliveries as pending."""
    return delivery.final_status or DeliveryStatus.PENDING


def _percentile(ordered: Sequence[float], share: float) -> float | None:
    return ordered[math.ceil(len(ordered) * share) - 1] if ordered else None
