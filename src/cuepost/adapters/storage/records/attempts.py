"""Attempts: each lies in the partition of its delivery, and leaves with it."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec
import sqlalchemy as sa

from cuepost.adapters.storage.session import Session
from cuepost.adapters.storage.statements import Among, Prepared
from cuepost.adapters.storage.tables import attempts
from cuepost.domain.attempt import UNCOUNTED, Attempt, Outcome, Timings, TlsFault
from cuepost.domain.delivery import Trigger
from cuepost.ports.history import AttemptFigures

_OF_ACCOUNT = attempts.c.account_id == sa.bindparam("account_id")
_FIGURES = Prepared(
    sa.select(
        attempts.c.delivery_id,
        attempts.c.budget,
        attempts.c.number,
        attempts.c.outcome,
        attempts.c.response_status,
        attempts.c.duration_ms,
    )
    .where(_OF_ACCOUNT, Among(attempts.c.delivery_id, "ids"))
    .order_by(attempts.c.delivery_id, attempts.c.budget, attempts.c.number)
)
_LAST_UNCOUNTED = Prepared(
    lambda among: (
        sa.select(attempts.c.delivery_id, sa.func.max(attempts.c.number))
        .where(
            among((attempts.c.account_id, attempts.c.delivery_id), "accounts", "deliveries"),
            attempts.c.budget == sa.literal_column(str(UNCOUNTED)),
        )
        .group_by(attempts.c.delivery_id)
    )
)
_LATER = attempts.alias("later")
# Found by keys alone, because what receivers answered can be large. The list is named twice, so
# that PostgreSQL looks for later ones in the same few partitions. Attempts that do not count have
# budget 0, so they come before all others.
_LAST = Prepared(
    sa.select(attempts).where(
        _OF_ACCOUNT,
        Among(attempts.c.delivery_id, "ids"),
        ~sa.exists().where(
            Among(_LATER.c.delivery_id, "ids"),
            _LATER.c.account_id == attempts.c.account_id,
            _LATER.c.delivery_id == attempts.c.delivery_id,
            sa.tuple_(_LATER.c.budget, _LATER.c.number)
            > sa.tuple_(attempts.c.budget, attempts.c.number),
        ),
    )
)


class AttemptRecords:
    def __init__(self, session: Session) -> None:
        self._session = session

    async def add(self, made: Sequence[Attempt]) -> None:
        await self._session.insert(attempts, [_row_of(attempt) for attempt in made])

    async def add_uncounted(self, made: Sequence[tuple[UUID | None, Attempt]]) -> None:
        """Attempts outside of every budget, with the worker that held them where it may report."""
        if not made:
            return
        last = await self._last_uncounted([attempt for _, attempt in made])
        rows = []
        for held_by, attempt in made:
            last[attempt.delivery_id] = number = last.get(attempt.delivery_id, 0) + 1
            rows.append(_row_of(attempt) | {"number": number, "held_by": held_by})
        await self._session.insert(attempts, rows)

    async def _last_uncounted(self, of: Sequence[Attempt]) -> dict[UUID, int]:
        rows = await self._session.fetch(
            _LAST_UNCOUNTED,
            accounts=[each.account_id for each in of],
            deliveries=[each.delivery_id for each in of],
        )
        return dict(rows)

    async def of_delivery(self, account_id: UUID, delivery_id: UUID) -> list[Attempt]:
        rows = await self._session.all(
            sa.select(attempts)
            .where(attempts.c.account_id == account_id, attempts.c.delivery_id == delivery_id)
            .order_by(attempts.c.budget, attempts.c.number)
        )
        # They are few, and no index has them in the order of time.
        return sorted(map(_attempt, rows), key=lambda attempt: attempt.started_at)

    async def last_of(self, account_id: UUID, delivery_ids: Sequence[UUID]) -> dict[UUID, Attempt]:
        rows = await self._session.unhurried.fetch(_LAST, account_id=account_id, ids=delivery_ids)
        last = [_attempt(row) for row in rows]
        return {attempt.delivery_id: attempt for attempt in last}

    async def figures_of(
        self, account_id: UUID, delivery_ids: Sequence[UUID]
    ) -> list[AttemptFigures]:
        if not delivery_ids:
            return []
        rows = await self._session.fetch(_FIGURES, account_id=account_id, ids=delivery_ids)
        return [
            AttemptFigures(delivery_id, budget, number, Outcome(outcome), status, duration_ms)
            for delivery_id, budget, number, outcome, status, duration_ms in rows
        ]


def _row_of(attempt: Attempt) -> dict[str, Any]:
    return {
        "account_id": attempt.account_id,
        "delivery_id": attempt.delivery_id,
        "budget": attempt.budget,
        "number": attempt.number,
        "trigger": attempt.trigger,
        "started_at": attempt.started_at,
        "duration_ms": attempt.duration_ms,
        "dns_ms": attempt.timings.dns_ms,
        "connect_ms": attempt.timings.connect_ms,
        "tls_ms": attempt.timings.tls_ms,
        "first_byte_ms": attempt.timings.first_byte_ms,
        "signed_with": " ".join(attempt.signed_with),
        "request_headers": msgspec.json.encode(attempt.request_headers),
        "response_status": attempt.response_status,
        "response_headers": msgspec.json.encode(attempt.response_headers),
        "response_body": attempt.response_body,
        "response_truncated": attempt.response_truncated,
        "outcome": attempt.outcome,
        "tls_fault": attempt.tls_fault,
        "url": attempt.url,
    }


def _attempt(row: Sequence[Any]) -> Attempt:
    (account_id, delivery_id, budget, number, trigger, started_at, duration_ms, *others) = row
    dns_ms, connect_ms, tls_ms, first_byte_ms, signed_with, sent, *others = others
    status, answered, body, truncated, outcome, tls_fault, url, _held_by = others
    return Attempt(
        account_id=account_id,
        delivery_id=delivery_id,
        budget=budget,
        number=number,
        trigger=Trigger(trigger),
        started_at=started_at,
        duration_ms=duration_ms,
        timings=Timings(dns_ms, connect_ms, tls_ms, first_byte_ms),
        # Hints that were stored before revision 0006 end in the padding of base64.
        signed_with=tuple(signed_with.replace("=", "").split()),
        request_headers=_headers(sent),
        response_status=status,
        response_headers=_headers(answered),
        response_body=body,
        response_truncated=truncated,
        outcome=Outcome(outcome),
        tls_fault=None if tls_fault is None else TlsFault(tls_fault),
        url=url,
    )


def _headers(stored: bytes) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in msgspec.json.decode(stored))
