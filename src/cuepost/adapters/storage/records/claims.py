"""Claims: which deliveries a worker gets, endpoint by endpoint in turn."""

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import zip_longest
from typing import Any, NamedTuple
from uuid import UUID

import sqlalchemy as sa

from cuepost.adapters.storage.records import claim_statements as sql
from cuepost.adapters.storage.records.targets import load_targets
from cuepost.adapters.storage.session import Session, upsert
from cuepost.adapters.storage.tables import deliveries, lanes, queue
from cuepost.domain.delivery import CancelReason, DeliveryStatus, Trigger
from cuepost.ports.dispatch import BEGINNING, Assignment, Claim, Claimed

log = logging.getLogger("cuepost.store")

_QUEUE_KEY = ("account_id", "delivery_id")


class _Due(NamedTuple):
    """A row of the queue, as `claim_statements.DUE` lists its columns."""

    account_id: UUID
    delivery_id: UUID
    webhook_id: UUID
    event_id: UUID
    state: str
    due_at: datetime
    trigger: str
    budget: int
    attempts_made: int
    attempt_count: int


class _Fact(NamedTuple):
    """Of an event its body, and how long its project may notify."""

    body: bytes
    access_expires_at: datetime | None
    deleted_at: datetime | None


@dataclass(frozen=True, slots=True)
class _Sorted:
    """Deliveries that were picked: those to send, and those that must not be sent any more."""

    assignments: list[Assignment] = field(default_factory=list)
    ended: list[dict[str, Any]] = field(default_factory=list)


class Claims:
    def __init__(self, session: Session) -> None:
        self._session = session

    async def claim(self, wanted: Claim, now: datetime) -> Claimed:
        due = [lane for (lane,) in await self._session.fetch(sql.EARLIEST, now=now)]
        # With few that are due all their lanes are known; with many everyone has to get a turn.
        is_crowded = len(due) == sql.EARLIEST_LOOKED_AT
        around = await self._session.fetch(sql.LANES, behind=wanted.behind) if is_crowded else ()
        in_turn = [lane for (lane,) in around]
        chosen = {*wanted.hints, *in_turn, *due}
        full = {lane for lane in chosen if wanted.room_of.get(lane, 1) <= 0}
        free = sorted(chosen - full)
        held = free if wanted.alone else await self._hold(wanted.worker, free)
        picked, more = _shared_out(await self._due(held, wanted, now), wanted, in_turn)
        found = await self._sorted(picked, now)
        await self._lease(wanted.worker, found.assignments)
        await self._end(found.ended, now)
        busy = {each.webhook_id for each in found.assignments} | wanted.room_of.keys()
        if not wanted.alone:
            await self._let_go(wanted.worker, [lane for lane in held if lane not in busy])
        served = {row.webhook_id for row in picked}
        return Claimed(
            found.assignments,
            held=frozenset(busy.intersection(held)),
            looked_at=frozenset(chosen),
            more=frozenset(more | full),
            behind=_reached(wanted.behind, in_turn, more - served),
            is_all=not (is_crowded or more),
        )

    async def _hold(self, worker: UUID, chosen: Sequence[UUID]) -> list[UUID]:
        """Lanes that nobody else holds; taken in the order of ids, so that nobody deadlocks."""
        if not chosen:
            return []
        statement = upsert(self._session, lanes).values(
            [{"webhook_id": webhook_id, "worker_id": worker} for webhook_id in chosen]
        )
        rows = await self._session.all(
            statement.on_conflict_do_update(
                index_elements=["webhook_id"],
                set_={"worker_id": worker},
                where=lanes.c.worker_id == worker,
            ).returning(lanes.c.webhook_id)
        )
        return [row.webhook_id for row in rows]

    async def _let_go(self, worker: UUID, idle: Sequence[UUID]) -> None:
        if idle:
            await self._session.run(
                sa.delete(lanes).where(lanes.c.worker_id == worker, lanes.c.webhook_id.in_(idle))
            )

    async def _due(self, held: Sequence[UUID], wanted: Claim, now: datetime) -> list[_Due]:
        """Of each lane the longest due first attempts, and as many further ones."""
        found: list[_Due] = []
        most = max(1, min(wanted.per_lane, wanted.room))
        for state in sql.STATES:
            if self._session.dialect == "postgresql":
                statement = sql.DUE_IN_ALL[state]
                rows = await self._session.fetch(statement, lanes=held, now=now, most=most)
                found += [_Due(*row) for row in rows]
                continue
            for lane in held:
                statement = sql.DUE_IN_ONE[state]
                rows = await self._session.fetch(statement, lane=lane, now=now, most=most)
                found += [_Due(*row) for row in rows]
        return found

    async def _lease(self, worker: UUID, picked: Sequence[Assignment]) -> None:
        await self._session.update(
            queue,
            _QUEUE_KEY,
            [
                {
                    "account_id": each.account_id,
                    "delivery_id": each.delivery_id,
                    "state": DeliveryStatus.DELIVERING,
                    "lease_token": worker,
                }
                for each in picked
            ],
        )

    async def _end(self, ended: Sequence[dict[str, Any]], now: datetime) -> None:
        rows = [row | {"finished_at": now} for row in ended]
        await self._session.update(deliveries, ("account_id", "id"), rows)
        keys = [{"account_id": row["account_id"], "delivery_id": row["id"]} for row in ended]
        await self._session.delete(queue, _QUEUE_KEY, keys)

    async def _sorted(self, picked: Sequence[_Due], now: datetime) -> _Sorted:
        found = _Sorted()
        if not picked:
            return found
        lanes_of = {(row.account_id, row.webhook_id) for row in picked}
        targets = await load_targets(self._session, lanes_of, now)
        facts = await self._facts({(row.account_id, row.event_id) for row in picked})
        for row in picked:
            fact, target = facts.get(row.event_id), targets.get(row.webhook_id)
            if fact is None or target is None:
                log.error("event=delivery_without_event_or_endpoint delivery=%s", row.delivery_id)
                found.ended.append(_ended(row, DeliveryStatus.FAILED, None))
            elif (reason := _stopped(fact, now)) is not None:
                found.ended.append(_ended(row, DeliveryStatus.CANCELLED, reason))
            else:
                found.assignments.append(
                    Assignment(
                        account_id=row.account_id,
                        delivery_id=row.delivery_id,
                        webhook_id=row.webhook_id,
                        event_id=row.event_id,
                        trigger=Trigger(row.trigger),
                        budget=row.budget,
                        number=row.attempts_made + 1,
                        attempt_count=row.attempt_count,
                        body=fact.body,
                        target=target,
                        access_until=fact.access_expires_at,
                    )
                )
        return found

    async def _facts(self, keys: Iterable[tuple[UUID, UUID]]) -> dict[UUID, _Fact]:
        accounts, events = zip(*keys, strict=True)
        rows = await self._session.fetch(sql.FACTS, accounts=accounts, events=events)
        return {event_id: _Fact(*facts) for event_id, *facts in rows}


def _stopped(fact: _Fact, now: datetime) -> CancelReason | None:
    """An access window ends by itself, perhaps before anybody has noticed."""
    if fact.deleted_at is not None:
        return CancelReason.PROJECT_DELETED
    if fact.access_expires_at is not None and fact.access_expires_at <= now:
        return CancelReason.PROJECT_ACCESS_EXPIRED
    return None


def _ended(row: _Due, status: DeliveryStatus, reason: CancelReason | None) -> dict[str, Any]:
    return {
        "account_id": row.account_id,
        "id": row.delivery_id,
        "final_status": status,
        "reason": reason,
    }


def _shared_out(
    due: Sequence[_Due], wanted: Claim, in_turn: Sequence[UUID]
) -> tuple[list[_Due], set[UUID]]:
    """One of every lane and again, first attempts and further ones alike, until the room is full.

    Those whose turn it is begin, then those that have been due for longest.
    """
    queues: dict[UUID, dict[str, list[_Due]]] = defaultdict(lambda: defaultdict(list))
    for row in due:
        queues[row.webhook_id][row.state].append(row)
    mixed = {
        lane: [row for pair in zip_longest(*states.values()) for row in pair if row is not None]
        for lane, states in queues.items()
    }
    rooms = {lane: wanted.room_of.get(lane, wanted.per_lane) for lane in mixed}
    most = min(wanted.per_lane, wanted.room)
    more = {lane for lane, rows in mixed.items() if len(rows) >= min(rooms[lane], most)}
    place = {lane: number for number, lane in enumerate(in_turn)}
    order = sorted(mixed, key=lambda lane: (place.get(lane, len(place)), mixed[lane][0].due_at))
    turns = zip_longest(*(mixed[lane][: rooms[lane]] for lane in order))
    in_order = [row for turn in turns for row in turn if row is not None]
    more |= {row.webhook_id for row in in_order[wanted.room :]}
    return in_order[: wanted.room], more


def _reached(before: UUID, in_turn: Sequence[UUID], left_out: Collection[UUID]) -> UUID:
    """Up to where every lane has had its turn; who was left out is the next one."""
    for place, lane in enumerate(in_turn):
        if lane in left_out:
            return in_turn[place - 1] if place else before
    return in_turn[-1] if len(in_turn) == sql.LANES_LOOKED_AT else BEGINNING
