"""Claims: which deliveries a worker leases, round robin over the endpoints."""

import logging
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import zip_longest
from typing import Any, NamedTuple
from uuid import UUID

from cuepost.adapters.storage.records import claim_statements as sql
from cuepost.adapters.storage.records.claim_statements import Due
from cuepost.adapters.storage.records.delivery_rows import KEPT, KEY
from cuepost.adapters.storage.records.endpoints import load_targets
from cuepost.adapters.storage.records.stops import add_ended
from cuepost.adapters.storage.session import Records
from cuepost.domain.delivery import CancelReason, DeliveryStatus
from cuepost.ports.dispatch import BEGINNING, Assignment, Claim, Claimed, Lane, ScanProgress, Target

log = logging.getLogger("cuepost.store")

# Rows per lane and state; more than one, because reading a lane costs more than reading a row.
_FEWEST = 4


class Fact(NamedTuple):
    """The body of an event, and until when its project may notify."""

    body: bytes
    access_expires_at: datetime | None
    deleted_at: datetime | None


@dataclass(frozen=True, slots=True)
class _Scan:
    """Result of a full scan: lanes whose turn it is, lanes with due deliveries, next due time."""

    in_turn: Sequence[Lane] = ()
    due: Collection[Lane] = ()
    next_due: datetime | None = None


@dataclass(slots=True)
class Found:
    """Due deliveries of the held lanes; lanes in `cut` may have more."""

    held: set[Lane] = field(default_factory=set)
    rows: list[Due] = field(default_factory=list)
    cut: set[Lane] = field(default_factory=set)

    def put(self, rows: Sequence[Due], most: int) -> None:
        """`most` is the limit per lane and state that was asked for."""
        self.rows += rows
        counts = Counter((row.endpoint, row.status) for row in rows)
        self.cut |= {lane for (lane, _), count in counts.items() if count >= most}

    def forget(self, lanes: Collection[Lane]) -> None:
        self.rows = [row for row in self.rows if row.endpoint not in lanes]
        self.cut -= set(lanes)


class Claims(Records, ABC):
    """What both engines have in common."""

    async def claim(self, wanted: Claim, now: datetime) -> Claimed:
        seen = _Scan() if wanted.scan_after is None else await self._scan(wanted.scan_after, now)
        chosen = {*wanted.woken, *seen.in_turn, *seen.due}
        if wanted.share is not None:
            chosen = set(filter(wanted.share.has, chosen))
        rooms = {lane: wanted.room_of(lane) for lane in chosen}
        full = {lane for lane, room in rooms.items() if room <= 0}
        in_order = _in_order(chosen - full, seen.in_turn)
        found = await self._due({lane: rooms[lane] for lane in in_order}, wanted, now)
        picked, more = _shared_out(found, rooms, wanted.room, seen.in_turn)
        assignments = await self._assigned(wanted.worker, picked, now)
        scan = None
        if wanted.scan_after is not None:
            left_out = more.difference(row.endpoint for row in picked)
            scan = ScanProgress(_reached(wanted.scan_after, seen.in_turn, left_out), seen.next_due)
        return Claimed(
            assignments,
            held=frozenset(found.held),
            examined=frozenset(chosen),
            more=frozenset(more | full),
            scan=scan,
        )

    async def _scan(self, behind: Lane, now: datetime) -> _Scan:
        earliest = await self._session.fetch(sql.EARLIEST, now=now)
        due = {lane: count for lane, due_at, count in earliest if due_at <= now}
        # If few deliveries are due, all their lanes are known; otherwise each lane gets a turn.
        is_crowded = sum(due.values()) == sql.EARLIEST_LOOKED_AT
        lanes = await self._session.fetch(sql.LANES, behind=behind) if is_crowded else ()
        next_due = next((due_at for _, due_at, _ in earliest if due_at > now), None)
        return _Scan([lane for (lane,) in lanes], due.keys(), next_due)

    async def _due(self, rooms: Mapping[Lane, int], wanted: Claim, now: datetime) -> Found:
        """The longest due first attempts of the lanes that could be held, and as many retries.

        First reads no more than an equal share of each lane; if that does not fill the room, reads
        more of the lanes that have more. Idle lanes are released, unless they were chosen.
        """
        found, chosen = Found(), list(rooms)
        idle = set(wanted.idle).difference(chosen)
        most = max(1, min(max(rooms.values(), default=1), wanted.room))
        if not chosen:
            await self._release_lanes(wanted.worker, idle)
            return found
        share = min(most, max(_FEWEST, -(-wanted.room // len(chosen))))
        await self._read_due(found, chosen, replace(wanted, idle=idle), now, share)
        if share < most and len(found.rows) < wanted.room and found.cut:
            longer = [lane for lane in chosen if lane in found.cut]
            found.forget(longer)
            await self._read_due(found, longer, replace(wanted, idle=()), now, most)
        return found

    @abstractmethod
    async def _read_due(
        self, found: Found, chosen: Sequence[Lane], wanted: Claim, now: datetime, most: int
    ) -> None:
        """Hold these lanes, and add up to `most` due deliveries of each of their states."""

    @abstractmethod
    async def _lease(self, worker: UUID, picked: Sequence[Due]) -> dict[UUID, Fact]:
        """Leases them to the worker, and returns the facts of their events."""

    async def _release_lanes(self, worker: UUID, idle: Collection[Lane]) -> None:
        if idle:
            await self._session.execute(sql.RELEASE_LANES, worker=worker, idle=idle)

    async def _assigned(
        self, worker: UUID, picked: Sequence[Due], now: datetime
    ) -> list[Assignment]:
        """Assignments of the deliveries that may be sent; the others end here."""
        if not picked:
            return []
        facts = await self._lease(worker, picked)
        targets = await load_targets(self._session, {row.endpoint for row in picked}, now)
        assignments: list[Assignment] = []
        ended: list[dict[str, Any]] = []
        for row in picked:
            fact, target = facts.get(row.event_id), targets.get(row.endpoint)
            if fact is None or target is None:
                log.error("event=delivery_without_event_or_endpoint delivery=%s", row.id)
                ended.append(_ended(row, DeliveryStatus.FAILED, None, now))
            elif (reason := stopped_by(fact, now)) is not None:
                ended.append(_ended(row, DeliveryStatus.CANCELLED, reason, now))
            else:
                assignments.append(assignment_of(row, fact, target))
        keys = [{name: row[name] for name in KEY} for row in ended]
        await self._session.delete("queue", KEY, keys)
        await add_ended(self._session, ended)
        return assignments


def assignment_of(row: Due, fact: Fact, target: Target) -> Assignment:
    # Keyword arguments would take five times as long, and this runs for every attempt.
    return Assignment(
        row.account,
        row.id,
        row.endpoint,
        row.event_id,
        row.event_type,
        row.project_id,
        row.trigger,
        row.budget,
        row.attempts_made + 1,
        row.attempt_count,
        fact.body,
        target,
        fact.access_expires_at,
        row.delivered_at,
    )


def stopped_by(fact: Fact, now: datetime) -> CancelReason | None:
    """The access window may have ended before the maintenance job has processed its end."""
    if fact.deleted_at is not None:
        return CancelReason.PROJECT_DELETED
    if fact.access_expires_at is not None and fact.access_expires_at <= now:
        return CancelReason.PROJECT_ACCESS_EXPIRED
    return None


def _ended(
    row: Due, status: DeliveryStatus, reason: CancelReason | None, now: datetime
) -> dict[str, Any]:
    kept = {name: getattr(row, name) for name in KEPT}
    return kept | {"status": status, "reason": reason, "finished_at": now}


def _in_order(chosen: set[Lane], in_turn: Sequence[Lane]) -> list[Lane]:
    """The lanes whose turn it is come first."""
    first = [lane for lane in in_turn if lane in chosen]
    return first + sorted(chosen.difference(first))


def _shared_out(
    found: Found, rooms: Mapping[Lane, int], room: int, in_turn: Sequence[Lane]
) -> tuple[list[Due], set[Lane]]:
    """Round robin over the lanes, with first and further attempts alike, until the room is full.

    The lanes whose turn it is begin, then the lanes with the oldest due deliveries.
    """
    queues: dict[Lane, dict[str, list[Due]]] = defaultdict(lambda: defaultdict(list))
    for row in found.rows:
        queues[row.endpoint][row.status].append(row)
    mixed = {
        lane: [row for pair in zip_longest(*states.values()) for row in pair if row is not None]
        for lane, states in queues.items()
    }
    more = found.cut | {lane for lane, rows in mixed.items() if len(rows) >= rooms[lane]}
    place = {lane: number for number, lane in enumerate(in_turn)}
    order = sorted(mixed, key=lambda lane: (place.get(lane, len(place)), mixed[lane][0].due_at))
    turns = zip_longest(*(mixed[lane][: rooms[lane]] for lane in order))
    in_order = [row for turn in turns for row in turn if row is not None]
    more |= {row.endpoint for row in in_order[room:]}
    return in_order[:room], more


def _reached(before: Lane, in_turn: Sequence[Lane], left_out: Collection[Lane]) -> Lane:
    """The last lane before the first that was left out, which is the next one to get a turn."""
    for place, lane in enumerate(in_turn):
        if lane in left_out:
            return in_turn[place - 1] if place else before
    return in_turn[-1] if len(in_turn) == sql.LANES_LOOKED_AT else BEGINNING
