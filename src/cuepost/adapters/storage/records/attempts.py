"""Attempts: each is in the partition of its delivery, and is dropped with it."""

from collections.abc import Sequence
from uuid import UUID

from cuepost.adapters.quick_ids import ID_BYTES
from cuepost.adapters.storage.records import delivery_rows as rows
from cuepost.adapters.storage.session import Records, StoreSession, account_number, account_numbers
from cuepost.adapters.storage.sql import Sql
from cuepost.domain.attempt import UNCOUNTED, Attempt
from cuepost.ports.history import MOST_ATTEMPTS, AttemptFigures


def _own(*columns: str, chosen: str = "IN :ids") -> str:
    return (
        f"SELECT attempts.delivery_id, {', '.join(columns)} FROM attempts "
        f"WHERE attempts.account = :account AND attempts.delivery_id {chosen}"
    )


def _of_ended(*columns: str) -> str:
    return (
        f"SELECT id, {', '.join(columns)} FROM deliveries "
        "WHERE account = :account AND id IN :ids AND number IS NOT NULL"
    )


_FACTS = rows.AttemptRow._fields[1:]
_NEWEST = Sql(
    f"""
    {_own(*_FACTS, chosen="= :delivery")}
    ORDER BY attempts.budget DESC, attempts.number DESC LIMIT {MOST_ATTEMPTS}
    """
)
_OF_ENDED = Sql(_of_ended(*_FACTS))
_FIGURES = ("budget", "number", "outcome", "response_status", "duration_ms")
_OWN_FIGURES = Sql(_own(*_FIGURES))
_ENDED_FIGURES = Sql(_of_ended(*_FIGURES))
# Found by keys only, because response bodies can be large. The list is used twice, so that
# PostgreSQL searches later attempts in the same few partitions. Attempts that do not count have
# budget 0, so they sort before all others.
_LAST = Sql(
    f"""
    {_own(*_FACTS)} AND NOT EXISTS (
        SELECT * FROM attempts AS later
        WHERE later.delivery_id IN :ids
            AND later.account = attempts.account AND later.delivery_id = attempts.delivery_id
            AND (later.budget, later.number) > (attempts.budget, attempts.number)
    )
    """
)
_UNCOUNTED = f"budget = {UNCOUNTED} GROUP BY delivery_id"
# SQLite compares both columns with the affinity of the first, and uses no index for numbers that
# are compared as text, so the account comes second. PostgreSQL's planner cannot use a comparison
# with a list of one for a join, so it has to look up each of them.
_LAST_UNCOUNTED = Sql(
    sqlite=f"""
    SELECT delivery_id, max(number) AS number FROM attempts
    WHERE (delivery_id, account) IN (
        SELECT substr(:deliveries, {ID_BYTES} * listed.key + 1, {ID_BYTES}), listed.value
        FROM json_each(:accounts) AS listed
    ) AND {_UNCOUNTED}
    """,
    postgresql=f"""
    SELECT delivery_id, max(number) AS number
    FROM attempts, unnest(:accounts::integer[], :deliveries::uuid[]) AS given (account, delivery)
    WHERE attempts.account = ANY (ARRAY[given.account])
        AND delivery_id = ANY (ARRAY[given.delivery]) AND {_UNCOUNTED}
    """,
)


class AttemptRecords(Records):
    async def add(self, made: Sequence[Attempt]) -> None:
        numbers = await account_numbers(self._session, [each.account_id for each in made])
        added = [rows.attempt_row(each, numbers[each.account_id]) for each in made]
        await self._session.write(rows.ADD_ATTEMPTS, added)

    async def of_delivery(self, account_id: UUID, delivery_id: UUID) -> list[Attempt]:
        account = await account_number(self._session, account_id)
        own = await self._session.fetch(_NEWEST, account=account, delivery=delivery_id)
        last = await self._session.fetch(_OF_ENDED, account=account, ids=[delivery_id])
        read = [*map(rows.AttemptRow._make, own), *map(rows.last_attempt, last)]
        made = [each.attempt(account_id) for each in read]
        made.sort(key=lambda each: (each.started_at, each.budget, each.number))
        return made[-MOST_ATTEMPTS:]

    async def last_of(self, account_id: UUID, delivery_ids: Sequence[UUID]) -> dict[UUID, Attempt]:
        account = await account_number(self._session, account_id)
        last: dict[UUID, Attempt] = {}
        for statement, read in ((_LAST, rows.AttemptRow._make), (_OF_ENDED, rows.last_attempt)):
            session = self._session.offloaded
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


async def add_uncounted(
    session: StoreSession, made: Sequence[tuple[int, UUID | None, Attempt]]
) -> None:
    """Adds attempts outside of every budget: account, worker that may still report, attempt."""
    if not made:
        return
    last = dict(
        await session.fetch(
            _LAST_UNCOUNTED,
            accounts=[account for account, _, _ in made],
            deliveries=[attempt.delivery_id for _, _, attempt in made],
        )
    )
    numbered = []
    for account, held_by, attempt in made:
        last[attempt.delivery_id] = number = last.get(attempt.delivery_id, 0) + 1
        numbered.append(rows.attempt_row(attempt, account, number=number, held_by=held_by))
    await session.write(rows.ADD_ATTEMPTS, numbered)
