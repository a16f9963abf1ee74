"""Figures for charts, from the counts per endpoint and interval: they never read the history."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum
from uuid import UUID

from cuepost.domain.access import Caller, Scope
from cuepost.domain.comparison import Comparison, compared
from cuepost.domain.delivery_counts import (
    FINE_MINUTES,
    HOUR_MINUTES,
    Counts,
    Interval,
    interval_of,
    total_of,
)
from cuepost.domain.instants import from_millis, to_millis
from cuepost.ports.history import Bars
from cuepost.ports.store import Transaction
from cuepost.ports.system import Clock


class Range(Enum):
    """How far back, in how many bars; the value is its name in addresses and forms."""

    HOUR = "1h"
    DAY = "24h"
    WEEK = "7d"
    MONTH = "30d"

    @property
    def bars(self) -> int:
        return _SHAPES[self][0]

    @property
    def bar_minutes(self) -> int:
        return _SHAPES[self][1]

    @property
    def bar(self) -> timedelta:
        return timedelta(minutes=self.bar_minutes)

    @property
    def length(self) -> timedelta:
        return self.bars * self.bar

    @property
    def counted_minutes(self) -> int:
        """The intervals that bars are made of."""
        return FINE_MINUTES if self is Range.HOUR else HOUR_MINUTES

    def bars_from(self, since: datetime) -> Bars:
        return Bars(since, self.counted_minutes, self.bar_minutes)

    def figures(self, found: Iterable[Interval], since: datetime) -> "Figures":
        groups: list[list[Counts]] = [[] for _ in range(self.bars)]
        for interval in found:
            place = min((interval.since - since) // self.bar, self.bars - 1)
            groups[place].append(interval.counts)
        bars = [
            Interval(since + place * self.bar, total_of(each)) for place, each in enumerate(groups)
        ]
        return Figures(
            since=since,
            until=since + self.length,
            bars=bars,
            counts=total_of(bar.counts for bar in bars),
        )


_SHAPES = {
    Range.HOUR: (12, FINE_MINUTES),
    Range.DAY: (24, HOUR_MINUTES),
    Range.WEEK: (28, 6 * HOUR_MINUTES),
    Range.MONTH: (30, 24 * HOUR_MINUTES),
}


@dataclass(frozen=True, slots=True)
class Figures:
    """Of deliveries that began since then: the last bar is of now, and not over yet.

    `comparison` is with the period before, where that was asked for and there are counts of it.
    """

    since: datetime
    until: datetime
    bars: Sequence[Interval]
    counts: Counts
    comparison: Comparison | None = None


@dataclass(frozen=True, slots=True)
class DeliveryFigures:
    clock: Clock
    retention: timedelta

    async def of_account(
        self, transaction: Transaction, caller: Caller, span: Range = Range.DAY
    ) -> Figures:
        """Of all endpoints of the account together, compared with the period before."""
        account_id = caller.require_webhooks(Scope.WEBHOOKS_READ)
        now, since = self.clock.now(), self.since(span)
        before = since - span.length
        first = before if now - before <= self.retention else since
        found = await transaction.counts.of_account(account_id, span.bars_from(first))
        figures = span.figures((each for each in found if each.since >= since), since)
        earlier = total_of(each.counts for each in found if each.since < since)
        elapsed = (now - since) / span.length
        return replace(figures, comparison=compared(figures.counts, earlier, elapsed))

    async def of_endpoints(
        self,
        transaction: Transaction,
        caller: Caller,
        webhook_ids: Sequence[UUID],
        span: Range = Range.DAY,
    ) -> dict[UUID, Figures]:
        account_id = caller.require_webhooks(Scope.WEBHOOKS_READ)
        since = self.since(span)
        found = await transaction.counts.of_endpoints(
            account_id, webhook_ids, span.bars_from(since)
        )
        return {each: span.figures(found.get(each, ()), since) for each in webhook_ids}

    async def of_endpoint(
        self,
        transaction: Transaction,
        caller: Caller,
        webhook_id: UUID,
        span: Range = Range.DAY,
    ) -> Figures:
        return (await self.of_endpoints(transaction, caller, [webhook_id], span))[webhook_id]

    def since(self, span: Range) -> datetime:
        """The beginning of the first bar; the last one has the present in it."""
        last = interval_of(to_millis(self.clock.now()), span.bar_minutes)
        return from_millis(last) + span.bar - span.length
