"""Results of attempts on PostgreSQL: deliveries end, and health is read, in one round trip."""

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from operator import attrgetter
from typing import Any
from uuid import UUID

from cuepost.adapters.storage.columns import converted, kind_of
from cuepost.adapters.storage.postgres_writes import equal_columns
from cuepost.adapters.storage.records import health
from cuepost.adapters.storage.records.delivery_rows import ATTEMPT_COLUMNS, KEPT, attempt_values
from cuepost.adapters.storage.records.late_results import keys_of
from cuepost.adapters.storage.records.outcomes import ENDED, Open, OutcomeRecords, by_id
from cuepost.adapters.storage.row_writes import Row, inserted
from cuepost.adapters.storage.sql import Sql, by_keys
from cuepost.ports.dispatch import Lane, Result

_TROUBLED = ", ".join(f"troubled.{name}" for name in health.COLUMNS)
# The count of `changing` forces endpoints to be locked before the queue, because disabling an
# endpoint locks in this order too. `troubled` is few rows or none: each delivery is compared with
# all of them.
_HEALTH = f"""
    changing AS ({health.CHANGING}), acknowledge AS (
        UPDATE endpoints SET last_delivered_at = :now FROM changing
        WHERE endpoints.number == changing.number AND changing.is_untroubled
    ), troubled AS MATERIALIZED (SELECT * FROM changing WHERE NOT is_untroubled)
    """
_IS_LOCKED = "(SELECT count(*) FROM changing) >= 0"
# Found by their keys, because the index of leases has an entry for every delivery that was in
# flight since the last vacuum, and a long queue is vacuumed rarely. They are locked in the same
# order as by a stop.
OPEN_AND_HEALTH = by_keys(
    f"""
    WITH {_HEALTH}
    SELECT {", ".join(f"queue.{name}" for name in Open._fields)}, {_TROUBLED}
    FROM queue LEFT JOIN troubled ON troubled.number = queue.endpoint
    """,
    "queue.account",
    "queue.id",
    f"AND {_IS_LOCKED} ORDER BY queue.id FOR UPDATE OF queue",
)
_MADE = ("status", "reason", *ATTEMPT_COLUMNS)
# The new values of rows that are moved by `end_leased`.
_RESULT = inserted("deliveries", "account", "id", "budget", *_MADE)


@cache
def end_leased(equal: tuple[str, ...]) -> Sql:
    """Each column of `_RESULT` is a parameter: one value if it is `equal`, otherwise an array.

    Only what is new is sent; the rest of a row comes from the queue. The comparison of workers is
    written so that the planner cannot use the index of leases.
    """

    def parameter(name: str) -> str:
        return f":{name}::{kind_of('deliveries', name).postgres_type}"

    def value(name: str) -> str:
        return parameter(name) if name in equal else f"given.{name}"

    listed = [name for name in _RESULT.columns if name not in equal]
    arrays = ", ".join(f"{parameter(name)}[]" for name in listed)
    kept = ", ".join(f"queue.{name}" for name in KEPT if name != "attempt_count")
    made = ", ".join(f"{value(name)} AS {name}" for name in _MADE)
    columns = ", ".join(ENDED)
    return Sql(
        postgresql=f"""
        WITH {_HEALTH}, ended AS (
            DELETE FROM queue USING unnest({arrays}) AS given ({", ".join(listed)})
            WHERE queue.account == given.account AND queue.id == given.id
                AND (queue.worker = :worker) IS TRUE AND queue.budget = {value("budget")}
                AND queue.attempts_made = {value("number")} - 1 AND {_IS_LOCKED}
            RETURNING {kept}, queue.attempt_count + 1 AS attempt_count,
                :now::timestamptz AS finished_at, {made}
        ), history AS (
            INSERT INTO deliveries ({columns}) SELECT {columns} FROM ended
        )
        SELECT ended.id, {_TROUBLED} FROM ended
        LEFT JOIN troubled ON troubled.number = ended.endpoint
        """
    )


class PostgresOutcomeRecords(OutcomeRecords):
    async def _end_leased(
        self, worker: UUID, results: Sequence[Result], now: datetime
    ) -> tuple[Sequence[Result], dict[Lane, health.Remembered]]:
        if not results or any(each.next_step.due_at is not None for each in results):
            # Otherwise those that end would be locked before the others, and not in one order.
            return (), {}
        # Rows are deleted, and so locked, in the order of the arrays.
        in_order = sorted(results, key=attrgetter("assignment.delivery_id"))
        values = converted([_result(each) for each in in_order], _RESULT.to_postgres)
        columns = list(zip(*values, strict=True))
        equal = equal_columns(_RESULT, columns)
        parameters = {
            name: column[0] if name in equal else column
            for name, column in zip(_RESULT.columns, columns, strict=True)
        }
        rows = await self._session.fetch(
            end_leased(equal), worker=worker, **parameters, **health.chosen_by(results, now)
        )
        of_id = {each.assignment.delivery_id: each for each in reversed(in_order)}
        return [of_id[each] for each, *_ in rows], _remembered(rows, 1)

    async def _open(
        self, rest: Sequence[Result], now: datetime, changing: dict[Lane, health.Remembered]
    ) -> dict[UUID, Open]:
        keys = keys_of([each.assignment for each in rest])
        rows = await self._session.fetch(OPEN_AND_HEALTH, **keys, **health.chosen_by(rest, now))
        changing |= _remembered(rows, len(Open._fields))
        return by_id(rows)


def _result(each: Result) -> Row:
    made, step = each.assignment, each.next_step
    attempt = attempt_values(each.attempt)
    return made.account, made.delivery_id, made.budget, step.status, step.reason, *attempt


def _remembered(rows: Sequence[Any], place: int) -> dict[Lane, health.Remembered]:
    """From rows with the columns of `troubled` from this place on, which are mostly empty."""
    return health.remembered(row[place:] for row in rows if row[place] is not None)
