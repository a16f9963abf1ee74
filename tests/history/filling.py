"""A month of history of one account, made by arithmetic: which rows a filter takes is known."""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from cuepost.adapters.storage.tables import endpoints as endpoint_rows
from cuepost.adapters.storage.tables import queue
from cuepost.domain.access import Account
from cuepost.domain.delivery import FINAL, CancelReason, Delivery, DeliveryStatus, Trigger
from cuepost.domain.endpoint import Endpoint
from cuepost.domain.event import Event
from cuepost.domain.instants import compose, to_millis
from cuepost.ports.history import DeliveryFilter, EventFilter
from cuepost.testing import START
from tests.support.records import Records
from tests.support.store_rows import AnyStore, run

DAYS = 30
PENDING = 22_000
FEW = 10
COMMON_TYPE, RARE_TYPE = "project.completed", "project.cancelled"
# Whole days, so that no partition is so small that reading all of it would be best.
_BEGIN = START.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=DAYS)
_MONTH_MILLIS = DAYS * 86_400_000
_AN_EVENT_HAS = 3
_AT_ONCE = 3_000


@dataclass(frozen=True, slots=True)
class Names:
    """The things that the filters name."""

    account: UUID
    busy_endpoint: UUID
    busy_project: UUID
    rare_project: UUID
    crowded_event: UUID
    small_event: UUID


@dataclass(frozen=True, slots=True)
class Month:
    """`rows` deliveries: many of a busy endpoint, a busy project and a crowded event; few of the
    rare ones; some waiting, from the first day to the last; some of a deleted endpoint; some that
    were delivered, sent again and failed."""

    rows: int
    account: Account
    endpoints: tuple[Endpoint, ...]

    @property
    def deleted(self) -> UUID:
        return self.endpoints[-1].id

    @property
    def events(self) -> int:
        return self.rows // _AN_EVENT_HAS

    @property
    def names(self) -> Names:
        return Names(
            account=self.account.id,
            busy_endpoint=self.endpoints[0].id,
            busy_project=_project(0),
            rare_project=_project(1),
            crowded_event=self.event(0).id,
            small_event=self.event(self.events // FEW).id,
        )

    def at(self, place: int) -> datetime:
        return _BEGIN + timedelta(milliseconds=place * _MONTH_MILLIS // self.rows)

    def event(self, number: int) -> Event:
        at, chance = self.at(number * _AN_EVENT_HAS), _chance(b"event", number)
        few = self.events // FEW
        project = chance % 500 + 2
        if number == 0 or chance % 5 < 2:
            project = 0
        elif number % few == few // 3:
            project = 1
        return Event(
            account_id=self.account.id,
            id=compose(to_millis(at), chance >> 64),
            type=RARE_TYPE if number % few == few // 2 else COMMON_TYPE,
            created_at=at,
            project_id=_project(project),
            occurred_at=at,
            body=b'{"data":{}}',
        )

    def delivery(self, place: int, usual: Event, crowded: Event) -> Delivery:
        chance = _chance(b"delivery", place)
        event = crowded if chance % 400 == 0 else usual
        at = event.created_at
        status = self._status(place, chance >> 8)
        ended = at + timedelta(seconds=1) if status in FINAL else None
        cancelled = status is DeliveryStatus.CANCELLED
        failed = status is DeliveryStatus.FAILED
        was_delivered = failed and not self._is_undelivered(place) and chance % 8 == 0
        return Delivery(
            account_id=self.account.id,
            id=compose(to_millis(at), chance >> 64),
            webhook_id=self._endpoint(chance >> 16),
            event_id=event.id,
            event_type=event.type,
            project_id=event.project_id,
            trigger=Trigger.MANUAL if was_delivered else Trigger.AUTOMATIC,
            status=status,
            created_at=at,
            reason=CancelReason.ENDPOINT_DISABLED if cancelled else None,
            next_attempt_at=None if ended else at,
            finished_at=ended,
            delivered_at=ended if was_delivered or status is DeliveryStatus.DELIVERED else None,
        )

    def chunks(self) -> Iterator[tuple[list[Event], list[Delivery]]]:
        crowded = self.event(0)
        for start in range(0, self.rows, _AT_ONCE):
            places = range(start, min(start + _AT_ONCE, self.rows))
            numbers = range(places[0] // _AN_EVENT_HAS, places[-1] // _AN_EVENT_HAS + 1)
            events = {number: self.event(number) for number in numbers}
            yield (
                list(events.values()),
                [self.delivery(each, events[each // _AN_EVENT_HAS], crowded) for each in places],
            )

    def _status(self, place: int, chance: int) -> DeliveryStatus:
        few = self.rows // FEW
        if self._is_undelivered(place):
            return DeliveryStatus.FAILED
        if place % few == few // 4:
            return DeliveryStatus.RETRYING
        if place % max(2, self.rows // PENDING) == 0:
            return DeliveryStatus.PENDING
        rest = {0: DeliveryStatus.CANCELLED, 1: DeliveryStatus.FAILED}
        return rest.get(chance % 8, DeliveryStatus.DELIVERED)

    def _is_undelivered(self, place: int) -> bool:
        few = self.rows // FEW
        return place % few == few // 2

    def _endpoint(self, chance: int) -> UUID:
        if chance % 20 == 0:
            return self.deleted
        if chance % 5 < 2:
            return self.endpoints[0].id
        return self.endpoints[chance % (len(self.endpoints) - 1)].id


def _project(number: int) -> UUID:
    return compose(to_millis(_BEGIN), number)


def _chance(what: bytes, number: int) -> int:
    return int.from_bytes(blake2b(b"%s %d" % (what, number), digest_size=17).digest())


def month_of(records: Records, rows: int) -> Month:
    account = records.account()
    endpoints = tuple(records.endpoint(account.id) for _ in range(11))
    return Month(rows, account, endpoints)


@dataclass(slots=True)
class Expected:
    """The ids that each filter takes, oldest first."""

    of_deliveries: dict[str, tuple[DeliveryFilter, list[UUID]]] = field(default_factory=dict)
    of_events: dict[str, tuple[EventFilter, list[UUID]]] = field(default_factory=dict)

    def note(self, events: list[Event], deliveries: list[Delivery]) -> None:
        for chosen, ids in self.of_deliveries.values():
            named = _named(chosen)
            ids += [each.id for each in deliveries if _takes(named, each)]
        for event_filter, ids in self.of_events.values():
            named = _named(event_filter)
            ids += [each.id for each in events if _takes(named, each)]

    def sort(self) -> None:
        for _, ids in (*self.of_deliveries.values(), *self.of_events.values()):
            ids.sort()


def _named(chosen: DeliveryFilter | EventFilter) -> tuple[tuple[str, Any], ...]:
    named = [(each.name, getattr(chosen, each.name)) for each in fields(chosen)]
    if isinstance(chosen, EventFilter):
        named = [("type" if name == "event_type" else name, value) for name, value in named]
    return tuple((name, value) for name, value in named if value is not None)


def _takes(named: tuple[tuple[str, Any], ...], each: Delivery | Event) -> bool:
    if not _includes(dict(named), each):
        return False
    for name, value in named:
        if name == "include_delivered":
            continue
        if name == "since":
            fits = value <= each.created_at
        elif name == "until":
            fits = each.created_at < value
        else:
            fits = value == getattr(each, name)
        if not fits:
            return False
    return True


def _includes(named: dict[str, Any], each: Delivery | Event) -> bool:
    if named.get("status") is not DeliveryStatus.FAILED or named["include_delivered"]:
        return True
    return isinstance(each, Delivery) and each.delivered_at is None


async def fill(store: AnyStore, records: Records, month: Month, expected: Expected) -> None:
    stranger = month_of(records, month.rows // FEW)
    async with store.transaction() as transaction:
        for each in (month, stranger):
            await transaction.accounts.add(each.account)
            for endpoint in each.endpoints:
                await transaction.endpoints.add(endpoint, records.secret())
            for events, deliveries in each.chunks():
                await transaction.events.add(events)
                await transaction.deliveries.add(deliveries)
                if each is month:
                    seen = [made for made in deliveries if made.webhook_id != month.deleted]
                    expected.note(events, seen)
    expected.sort()
    await _delete_but_do_not_clear_away(store, month)


async def _delete_but_do_not_clear_away(store: AnyStore, month: Month) -> None:
    number = sa.select(endpoint_rows.c.number).where(endpoint_rows.c.id == month.deleted)
    await run(store, sa.delete(queue).where(queue.c.endpoint == number.scalar_subquery()))
    await run(
        store,
        sa.update(endpoint_rows)
        .where(endpoint_rows.c.id == month.deleted)
        .values(deleted_at=START, enabled=False),
    )
