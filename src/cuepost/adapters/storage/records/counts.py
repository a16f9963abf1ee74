"""Counts per endpoint and interval, written in the transaction of what they count.

Each delivery is counted in two intervals, a short one and an hour, by the instant in its id. A
tally collects what one call has to count, and adds it to the store in one statement.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from functools import lru_cache
from operator import add
from typing import Any
from uuid import UUID

from cuepost.adapters.storage.row_writes import RowWrite
from cuepost.adapters.storage.session import Records, StoreSession, numbers_of
from cuepost.adapters.storage.sql import Sql
from cuepost.domain.attempt import Attempt
from cuepost.domain.delivery import DeliveryStatus
from cuepost.domain.delivery_counts import (
    FINE_MINUTES,
    HOUR_MINUTES,
    LATENCY_BINS,
    AttemptClass,
    Counts,
    Interval,
    class_of,
    interval_of,
    latency_bin,
)
from cuepost.domain.instants import from_millis
from cuepost.ports.history import Bars

TABLE = "delivery_counts"
KEY = ("account", "endpoint", "minutes", "since")
ENDS = ("delivered", "failed", "cancelled", "abandoned")
CLASSES = tuple(each.value for each in AttemptClass)
BINS = tuple(f"latency_{place}" for place in range(LATENCY_BINS))
COUNTED = (*ENDS, *CLASSES, *BINS)
_ADD = RowWrite("accumulate", TABLE, (*KEY, *COUNTED), KEY)
_PLACE = {name: place for place, name in enumerate(COUNTED)}
_PLACE_OF_STATUS = {
    DeliveryStatus.DELIVERED: _PLACE["delivered"],
    DeliveryStatus.FAILED: _PLACE["failed"],
    DeliveryStatus.CANCELLED: _PLACE["cancelled"],
}
_ABANDONED, _FIRST_BIN = _PLACE["abandoned"], _PLACE[BINS[0]]
_BITS_BELOW_MILLIS = 80
_MILLIS_OF_MINUTE = 60_000
_FINE = FINE_MINUTES * _MILLIS_OF_MINUTE
_Key = tuple[int, int, int]
_instant = lru_cache(maxsize=256)(from_millis)

_SUMS = ", ".join(f"sum({name}) AS {name}" for name in COUNTED)
_CHOSEN = f"""
    FROM {TABLE}
    WHERE account = :account AND endpoint IN :endpoints
        AND minutes = :minutes AND since >= :since
    """


def _in_bars(columns: str, group: str) -> Sql:
    """Sums of bars that begin at `since`: there are far fewer of them than intervals."""
    return Sql(
        sqlite=f"""
        SELECT {columns} since - (since - :since) % (:bar * {_MILLIS_OF_MINUTE}) AS since, {_SUMS}
        {_CHOSEN} GROUP BY {group}
        """,
        postgresql=f"""
        SELECT {columns} date_bin(:bar * interval '1 minute', since, :since) AS since, {_SUMS}
        {_CHOSEN} GROUP BY {group}
        """,
    )


_OF_ENDPOINTS = _in_bars("endpoint,", "1, 2")
_OF_ACCOUNT = _in_bars("", "1")
CLEAR_ENDPOINT = Sql(f"DELETE FROM {TABLE} WHERE account = :account AND endpoint = :endpoint")


class Tally:
    """What one call counts; deliveries that begin again are counted with -1."""

    __slots__ = ("_rows",)

    def __init__(self) -> None:
        self._rows: dict[_Key, list[int]] = {}

    def ended(
        self,
        account: int,
        endpoint: int,
        delivery_id: UUID,
        status: DeliveryStatus,
        attempt_count: int,
        *,
        by: int = 1,
    ) -> None:
        row = self._row(account, endpoint, delivery_id)
        row[_PLACE_OF_STATUS[status]] += by
        if status is DeliveryStatus.CANCELLED and attempt_count:
            row[_ABANDONED] += by

    def attempted(self, account: int, endpoint: int, attempt: Attempt) -> None:
        found = class_of(attempt.outcome, attempt.response_status)
        if found is not None:
            row = self._row(account, endpoint, attempt.delivery_id)
            row[_PLACE[found]] += 1
            row[_FIRST_BIN + latency_bin(attempt.duration_ms)] += 1

    async def write(self, session: StoreSession) -> None:
        """In the order of the keys, so that transactions wait for one another in one order."""
        counts: dict[tuple[int, int, int, int], Sequence[int]] = {}
        for (account, endpoint, since), counted in self._rows.items():
            counts[account, endpoint, FINE_MINUTES, since] = counted
            hour = (account, endpoint, HOUR_MINUTES, interval_of(since, HOUR_MINUTES))
            before = counts.get(hour)
            counts[hour] = counted if before is None else list(map(add, before, counted))
        rows = [
            (account, endpoint, minutes, _instant(since), *counted)
            for (account, endpoint, minutes, since), counted in sorted(counts.items())
        ]
        await session.write(_ADD, rows)

    def _row(self, account: int, endpoint: int, delivery_id: UUID) -> list[int]:
        millis = delivery_id.int >> _BITS_BELOW_MILLIS
        key = (account, endpoint, millis - millis % _FINE)
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = [0] * len(COUNTED)
        return row


class CountRecords(Records):
    async def of_endpoints(
        self, account_id: UUID, webhook_ids: Sequence[UUID], bars: Bars
    ) -> dict[UUID, list[Interval]]:
        numbers = await numbers_of(self._session, account_id)
        found: dict[UUID, list[Interval]] = defaultdict(list)
        endpoints = [numbers.endpoint(each) for each in webhook_ids]
        for endpoint, begin, *counted in await self._session.offloaded.fetch(
            _OF_ENDPOINTS,
            account=numbers.account,
            endpoints=endpoints,
            **asdict(bars),
        ):
            found[numbers.webhook_of[endpoint]].append(Interval(begin, counts_of(counted)))
        return found

    async def of_account(self, account_id: UUID, bars: Bars) -> list[Interval]:
        numbers = await numbers_of(self._session, account_id)
        present = [each for each in numbers.webhook_of if each not in numbers.deleted]
        rows = await self._session.offloaded.fetch(
            _OF_ACCOUNT, account=numbers.account, endpoints=present, **asdict(bars)
        )
        return [Interval(begin, counts_of(counted)) for begin, *counted in rows]


def counts_of(counted: Sequence[Any]) -> Counts:
    ends, classes = counted[: len(ENDS)], counted[len(ENDS) : _FIRST_BIN]
    delivered, failed, cancelled, abandoned = map(int, ends)
    return Counts(
        delivered,
        failed,
        cancelled,
        abandoned,
        {each: int(count) for each, count in zip(AttemptClass, classes, strict=True) if count},
        tuple(map(int, counted[_FIRST_BIN:])),
    )
