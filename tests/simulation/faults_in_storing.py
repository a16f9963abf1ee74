"""What can be wrong about the queue, the records, and what is acknowledged."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from cuepost.adapters.storage import tables
from cuepost.adapters.storage.outbox import Outbox
from cuepost.adapters.storage.records import (
    claims,
    late_results,
    sqlite_retention,
)
from cuepost.adapters.storage.records.claim_statements import Due
from cuepost.adapters.storage.records.claims import Claims
from cuepost.adapters.storage.records.deliveries import DeliveryRecords
from cuepost.adapters.storage.records.endpoints import EndpointRecords
from cuepost.adapters.storage.records.queue import QueueRecords
from cuepost.adapters.storage.records.sqlite_queue import SqliteClaims
from cuepost.adapters.storage.sql import Sql
from cuepost.application import milestone_batch
from cuepost.application.report_milestones import ReportMilestones
from cuepost.domain.delivery import CancelReason, Delivery
from cuepost.domain.event import deliveries_of
from cuepost.ports.dispatch import Claim, Claimed, Lane, Target
from cuepost.ports.store import Transaction
from tests.simulation.deliberate_faults import Patch, breaks
from tests.support import core_statements


async def nothing(*_: object) -> None: ...


@breaks("I10", seed=6)
def attempts_of_the_dead_forgotten(patch: Patch) -> None:
    patch.setattr(QueueRecords, "_interrupt", nothing)


@breaks("I10", seed=6)
def late_results_forgotten(patch: Patch) -> None:
    async def never_asked(*_: object) -> int:
        return 0

    patch.setattr(QueueRecords, "_interrupt", nothing)
    patch.setattr(late_results, "keep", never_asked)


@breaks("I1", seed=5)
def the_dead_never_missed(patch: Patch) -> None:
    async def blind(_: object, now: datetime) -> int:
        return 0

    patch.setattr(QueueRecords, "remove_dead_workers", blind)


@breaks("I1", seed=4)
def acknowledged_before_the_commit(patch: Patch) -> None:
    write = ReportMilestones._write

    async def hasty(self: ReportMilestones, waiting: Any, transaction: Transaction) -> Any:
        answers = await write(self, waiting, transaction)
        for answer in waiting.answers:
            answer.set_result(answers)
        return answers

    patch.setattr(ReportMilestones, "_write", hasty)


@breaks("I1")
def one_endpoint_forgotten(patch: Patch) -> None:
    def few(*arguments: Any) -> Any:
        return deliveries_of(*arguments)[:1]

    patch.setattr(milestone_batch, "deliveries_of", few)


@breaks("I1", seed=3)
def retention_takes_what_is_live(patch: Patch) -> None:
    old = "SELECT id FROM events WHERE account = {} AND id < :lowest"
    forget = "DELETE FROM events WHERE account = :account AND id IN ({} ORDER BY id LIMIT :most)"
    of_each = old.format("accounts.number")
    find = f"SELECT number FROM accounts WHERE EXISTS ({of_each}) LIMIT 1"
    patch.setattr(sqlite_retention, "_DELETE_UNNEEDED", Sql(forget.format(old.format(":account"))))
    patch.setattr(
        sqlite_retention, "_ACCOUNT_WITH_HISTORY", Sql(find.format(old.format("accounts.number")))
    )


@breaks("I3", seed=2)
def sent_before_the_commit(patch: Patch) -> None:
    assign = Outbox.assign

    def hasty(self: Outbox, targets: dict[Lane, Target]) -> None:
        assign(self, targets)
        self.committed()
        self._assignments, self.reserved = {}, []

    patch.setattr(Outbox, "assign", hasty)


@breaks("I4", "I10", seed=3)
def claimed_again_while_in_flight(patch: Patch) -> None:
    due = Sql(
        f"SELECT {', '.join(Due._fields)} FROM queue "
        "WHERE endpoint IN :lanes AND due_at <= :now LIMIT :most"
    )

    async def whatever_is_due(
        self: Claims, held: Mapping[Lane, int], wanted: Claim, now: datetime
    ) -> claims.Found:
        rows = await self._session.fetch(due, lanes=held, now=now, most=wanted.room)
        return claims.Found(set(held), [Due._make(row) for row in rows])

    patch.setattr(Claims, "_due", whatever_is_due)


@breaks("I5", seed=4)
def sent_after_the_endpoint_was_disabled(patch: Patch) -> None:
    patch.setattr(DeliveryRecords, "stop_endpoint", nothing)


@breaks("I5", seed=27)
def sent_after_the_endpoint_was_deleted(patch: Patch) -> None:
    patch.setattr(EndpointRecords, "delete", nothing)


@breaks("I5", seed=14)
def sent_after_the_project_was_deleted(patch: Patch) -> None:
    not_heeded(patch, CancelReason.PROJECT_DELETED)


@breaks("I5", seed=17)
def sent_after_access_had_ended(patch: Patch) -> None:
    not_heeded(patch, CancelReason.PROJECT_ACCESS_EXPIRED)


def not_heeded(patch: Patch, ignored: CancelReason) -> None:
    """Several parts see to it that nothing is sent; all of them fail."""
    stop_project, stopped, claim = (
        DeliveryRecords.stop_project,
        claims.stopped_by,
        QueueRecords.claim,
    )

    async def stop(self: Any, account: UUID, project: UUID, why: Any, now: datetime) -> None:
        if why is not ignored:
            await stop_project(self, account, project, why, now)

    def looked_at(fact: Any, now: datetime) -> CancelReason | None:
        found = stopped(fact, now)
        return None if found is ignored else found

    patch.setattr(DeliveryRecords, "stop_project", stop)

    async def endless(self: QueueRecords, wanted: Claim, now: datetime) -> Claimed:
        found = await claim(self, wanted, now)
        free = [replace(each, access_until=None) for each in found.assignments]
        return replace(found, assignments=free)

    patch.setattr(claims, "stopped_by", looked_at)
    patch.setattr(QueueRecords, "claim", endless)


@breaks("I7", seed=23)
def two_workers_at_one_endpoint(patch: Patch) -> None:
    async def everything(_: object, worker: UUID, chosen: Sequence[Lane]) -> list[Lane]:
        return list(chosen)

    patch.setattr(SqliteClaims, "_hold", everything)


@breaks("I8")
def rows_of_other_accounts_are_shown(patch: Patch) -> None:
    page = DeliveryRecords.page

    async def of_everybody(self: DeliveryRecords, _: UUID, *chosen: Any) -> list[Delivery]:
        accounts = await core_statements.all_rows(self._session, sa.select(tables.accounts.c.id))
        return [each for row in accounts for each in await page(self, row.id, *chosen)]

    patch.setattr(DeliveryRecords, "page", of_everybody)
