"""Attempts: each lies in the partition of its delivery, and leaves with it."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from cuepost.adapters.storage.encoding import ENCODINGS
from cuepost.adapters.storage.records import attempt_rows as rows
from cuepost.adapters.storage.records.numbers import account_number, account_numbers
from cuepost.adapters.storage.session import Session
from cuepost.adapters.storage.statements import Among, Prepared
from cuepost.adapters.storage.tables import attempts, deliveries
from cuepost.domain.attempt import UNCOUNTED, Attempt
from cuepost.ports.history import AttemptFigures

_ACCOUNT = sa.bindparam("account", type_=sa.Integer)
_HAS_ATTEMPT = deliveries.c.number.is_not(None)


def _own(*columns: Any) -> sa.Select[Any]:
    return sa.select(*columns).where(
        attempts.c.account == _ACCOUNT, Among(attempts.c.delivery_id, "ids")
    )


def _of_ended(*columns: Any) -> sa.Select[Any]:
    return sa.select(*columns).where(
        deliveries.c.account == _ACCOUNT, Among(deliveries.c.id, "ids"), _HAS_ATTEMPT
    )


_OWN = Prepared(_own(*rows.OWN))
_OF_ENDED = Prepared(_of_ended(*rows.OF_ENDED))
_FIGURES = ("budget", "number", "outcome", "response_status", "duration_ms")
_OWN_FIGURES = Prepared(_own(attempts.c.delivery_id, *(attempts.c[name] for name in _FIGURES)))
_ENDED_FIGURES = Prepared(_of_ended(deliveries.c.id, *(deliveries.c[name] for name in _FIGURES)))
_LATER = attempts.alias("later")
# Found by keys alone, because what receivers answered can be large. The list is named twice, so
# that PostgreSQL looks for later ones in the same few partitions. Attempts that do not count have
# budget 0, so they come before all others.
_LAST = Prepared(
    _own(*rows.OWN).where(
        ~sa.exists().where(
            Among(_LATER.c.delivery_id, "ids"),
            _LATER.c.account == attempts.c.account,
            _LATER.c.delivery_id == attempts.c.delivery_id,
            sa.tuple_(_LATER.c.budget, _LATER.c.number)
            > sa.tuple_(attempts.c.budget, attempts.c.number),
        ),
    )
)
_LAST_UNCOUNTED = Prepared(
    lambda among: (
        sa.select(attempts.c.delivery_id, sa.func.max(attempts.c.number))
        .where(
            among((attempts.c.account, attempts.c.delivery_id), "accounts", "deliveries"),
            attempts.c.budget == sa.literal_column(str(UNCOUNTED)),
        )
        .group_by(attempts.c.delivery_id)
    )
)


class AttemptRecords:
    def __init__(self, session: Session) -> None:
        self._session = session

    async def add(self, made: Sequence[Attempt]) -> None:
        numbers = await account_numbers(self._session, [each.account_id for each in made])
        encoding = ENCODINGS[self._session.dialect]
        added = [rows.own_row(each, numbers[each.account_id], encoding) for each in made]
        await self._session.insert_encoded(attempts, rows.OWN_COLUMNS, added)

    async def of_delivery(self, account_id: UUID, delivery_id: UUID) -> list[Attempt]:
        account = await account_number(self._session, account_id)
        made = [
            read(row).attempt(account_id)
            for statement, read in ((_OWN, rows.Row._make), (_OF_ENDED, rows.beside))
            for row in await self._session.fetch(statement, account=account, ids=[delivery_id])
        ]
        return sorted(made, key=lambda attempt: attempt.started_at)

    async def last_of(self, account_id: UUID, delivery_ids: Sequence[UUID]) -> dict[UUID, Attempt]:
        account = await account_number(self._session, account_id)
        last: dict[UUID, Attempt] = {}
        for statement, read in ((_LAST, rows.Row._make), (_OF_ENDED, rows.beside)):
            session = self._session.unhurried
            for row in await session.fetch(statement, account=account, ids=delivery_ids):
                attempt = read(row).attempt(account_id)
                last[attempt.delivery_id] = attempt
        return last

    async def figures_of(
        self, account_id: UUID, delivery_ids: Sequence[UUID]
    ) -> list[AttemptFigures]:
        if not delivery_ids:
            return []
        account = await account_number(self._session, account_id)
        found = [
            AttemptFigures(*row)
            for statement in (_OWN_FIGURES, _ENDED_FIGURES)
            for row in await self._session.fetch(statement, account=account, ids=delivery_ids)
        ]
        return sorted(found, key=lambda each: (each.delivery_id, each.budget, each.number))


async def add_uncounted(session: Session, made: Sequence[tuple[int, UUID | None, Attempt]]) -> None:
    """Attempts outside of every budget: the account, the worker that may report, the attempt."""
    if not made:
        return
    last = dict(
        await session.fetch(
            _LAST_UNCOUNTED,
            accounts=[account for account, _, _ in made],
            deliveries=[attempt.delivery_id for _, _, attempt in made],
        )
    )
    numbered, encoding = [], ENCODINGS[session.dialect]
    for account, held_by, attempt in made:
        last[attempt.delivery_id] = number = last.get(attempt.delivery_id, 0) + 1
        numbered.append(rows.own_row(attempt, account, encoding, number=number, held_by=held_by))
    await session.insert_encoded(attempts, rows.OWN_COLUMNS, numbered)
