"""A whole service on a real store, with a clock that jumps and ids that repeat."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar
from uuid import UUID

import sqlalchemy as sa

from cuepost.adapters.media.local import LocalMedia
from cuepost.adapters.secret_box import AesGcmBox
from cuepost.adapters.storage import tables
from cuepost.adapters.storage.transaction import RecordsTransaction
from cuepost.application.manage_webhooks import EndpointChange, EndpointWithSecret
from cuepost.application.milestone_batch import Milestone
from cuepost.application.service import Rules, Service, SystemPorts, assemble, inbox_prefix
from cuepost.domain.access import OPERATOR_SCOPES, Account, Caller, Interface
from cuepost.domain.audit import AuditEntry
from cuepost.domain.delivery import CancelReason, Delivery, DeliveryStatus
from cuepost.domain.egress_policy import EgressPolicy
from cuepost.domain.event import Event
from cuepost.domain.project import Project, ProjectStatus
from cuepost.ports.dispatch import NextStep, Result
from cuepost.ports.history import DeliveryFilter, EventFilter
from cuepost.ports.media import NO_MEDIA, Media
from cuepost.ports.records import AuditFilter, Page, ReportAnswer
from cuepost.ports.store import Store, Transaction
from cuepost.testing import Factory, RepeatableEntropy, SequentialIds, VirtualClock
from tests.support import core_statements
from tests.support.records import Records
from tests.support.store_rows import end

P = ParamSpec("P")
T = TypeVar("T")

BASE_URL = "https://cuepost.example.com"
POLICY = EgressPolicy(inbox_prefix=inbox_prefix(BASE_URL))
RULES = Rules(BASE_URL, POLICY, endpoint_limit=3, requests_per_minute=60)
OPERATOR = Caller(Interface.CLI, "operator", None, OPERATOR_SCOPES, address=None)
EVERYTHING = Page(limit=1_000)
SQL = Callable[[RecordsTransaction], Awaitable[T]]


@dataclass(slots=True)
class Harness:
    store: Store
    clock: VirtualClock
    ids: SequentialIds
    box: AesGcmBox
    media: Media
    service: Service
    account: Account
    owner: Caller
    _reports: "count[int]" = field(default_factory=count)
    pipeline: Caller = field(default_factory=Factory.pipeline)

    def reassembled(self, rules: Rules) -> "Harness":
        """The same store behind a service with other rules, as after a restart."""
        system = SystemPorts(self.clock, self.ids, RepeatableEntropy("other"), self.box)
        return replace(self, service=assemble(self.store, system, rules, self.media))

    async def do(
        self,
        use_case: Callable[Concatenate[Transaction, P], Awaitable[T]],
        *arguments: P.args,
        **named: P.kwargs,
    ) -> T:
        return await self.service.perform.change(
            lambda transaction: use_case(transaction, *arguments, **named)
        )

    async def see(
        self,
        use_case: Callable[Concatenate[Transaction, P], Awaitable[T]],
        *arguments: P.args,
        **named: P.kwargs,
    ) -> T:
        return await self.service.perform.read(
            lambda transaction: use_case(transaction, *arguments, **named)
        )

    async def new_owner(self, *, webhooks_enabled: bool = True) -> Caller:
        account = await self.do(
            self.service.access.create_account, OPERATOR, "Another", webhooks_enabled
        )
        return replace(Factory.owner(account.id), webhooks_enabled=webhooks_enabled)

    async def endpoint(
        self,
        *events: str,
        url: str = "https://hooks.example.com/cue",
        caller: Caller | None = None,
    ) -> EndpointWithSecret:
        return await self.do(self.service.webhooks.create, caller or self.owner, url, events, "")

    async def enable(self, webhook_id: UUID, enabled: bool) -> None:
        wanted = EndpointChange(enabled=enabled)
        await self.do(self.service.webhooks.change, self.owner, webhook_id, wanted)

    async def project(
        self,
        status: ProjectStatus = ProjectStatus.EXPORTING,
        *,
        caller: Caller | None = None,
        **changed: object,
    ) -> Project:
        """A project straight into the store, so that it may have any status and history."""
        factory = Factory(self.ids, self.clock)
        made = factory.project((caller or self.owner).account, status=status, **changed)
        await self.do(lambda transaction: transaction.projects.add(made))
        return made

    async def stored(self, project: Project) -> Project:
        found = await self.see(lambda t: t.projects.get(project.account_id, project.id))
        assert found is not None
        return found

    def milestone(self, project: Project, status: str = "completed", **more: Any) -> Milestone:
        named = {"report_id": f"report-{next(self._reports)}"} | more
        return Milestone(project_id=project.id, status=ProjectStatus(status), **named)

    async def report(self, *milestones: Milestone) -> list[ReportAnswer]:
        return await self.service.milestones.report(self.pipeline, milestones)

    async def complete(self, project: Project | None = None) -> Delivery:
        """Report a project completed; the one delivery that follows."""
        [answer] = await self.report(self.milestone(project or await self.project()))
        [delivery] = [each for each in await self.deliveries() if each.event_id == answer.event_id]
        return delivery

    async def complete_to(self, webhook_id: UUID | str) -> Delivery:
        """Report a new project completed; the delivery to this endpoint, of several."""
        [answer] = await self.report(self.milestone(await self.project()))
        [delivery] = await self.deliveries(
            webhook_id=UUID(str(webhook_id)), event_id=answer.event_id
        )
        return delivery

    async def deliveries(self, caller: Caller | None = None, **chosen: Any) -> list[Delivery]:
        views = await self.see(
            self.service.history.deliveries,
            caller or self.owner,
            DeliveryFilter(**chosen),
            EVERYTHING,
        )
        return [view.delivery for view in views]

    async def events(self, caller: Caller | None = None) -> list[Event]:
        views = await self.see(
            self.service.history.events, caller or self.owner, EventFilter(), EVERYTHING
        )
        return [view.event for view in views]

    async def audit(self, caller: Caller | None = None) -> list[AuditEntry]:
        found = await self.see(
            self.service.history.audit, caller or self.owner, AuditFilter(), EVERYTHING
        )
        return list(found.entries)

    async def end(self, delivery: Delivery, status: DeliveryStatus) -> None:
        """What the engine will do once an attempt was the last one, or a stop overtook it."""
        stopped = status is DeliveryStatus.CANCELLED
        reason = CancelReason.ENDPOINT_DISABLED if stopped else None

        async def write(transaction: RecordsTransaction) -> None:
            await end(transaction, delivery.id, status, self.clock.now(), reason)

        await self.sql(write)

    async def record(self, delivery: Delivery, status: DeliveryStatus, **attempt: Any) -> None:
        """What the engine does after the next attempt, which comes out like this."""
        worker, now, queue = self.ids(self.clock.now()), self.clock.now(), tables.queue

        async def write(transaction: RecordsTransaction) -> None:
            leased = sa.update(queue).where(queue.c.id == delivery.id)
            values = {"status": DeliveryStatus.DELIVERING, "worker": worker}
            await core_statements.run(transaction.session, leased.values(values))
            [row] = await core_statements.all_rows(
                transaction.session, sa.select(queue).where(queue.c.id == delivery.id)
            )
            records, number = Records(self.clock, self.ids), row.attempts_made + 1
            assignment = records.assignment(
                delivery,
                account=row.account,
                lane=row.endpoint,
                budget=row.budget,
                number=number,
                attempt_count=row.attempt_count,
            )
            made = records.attempt(delivery, budget=row.budget, number=number, **attempt)
            due_at = now + timedelta(minutes=1) if status is DeliveryStatus.RETRYING else None
            result = Result(assignment, made, NextStep(status, due_at))
            assert await transaction.outcomes.record(worker, [result], now) == 0

        await self.sql(write)

    async def requeue(self, delivery: Delivery, status: DeliveryStatus) -> None:
        """What the engine will do when it takes a delivery, or puts it back after a failure."""
        queue, leased = tables.queue, status is DeliveryStatus.DELIVERING
        values = {"status": status, "worker": self.ids(self.clock.now()) if leased else None}

        async def write(transaction: RecordsTransaction) -> None:
            await core_statements.run(
                transaction.session,
                sa.update(queue).where(queue.c.id == delivery.id).values(values),
            )

        await self.sql(write)

    async def count_attempts(self, delivery: Delivery, made: int) -> None:
        """What the engine will write beside the attempts themselves."""

        async def write(transaction: RecordsTransaction) -> None:
            for rows in (tables.deliveries, tables.queue):
                await core_statements.run(
                    transaction.session,
                    sa.update(rows).where(rows.c.id == delivery.id).values(attempt_count=made),
                )

        await self.sql(write)

    async def queued(self) -> set[UUID]:
        return {row.id for row in (await self.dump())["queue"]}

    async def dump(self) -> dict[str, Sequence[sa.Row[Any]]]:
        """Every row of every table."""

        async def read(transaction: RecordsTransaction) -> dict[str, Sequence[sa.Row[Any]]]:
            return {
                table.name: await core_statements.all_rows(
                    transaction.session, sa.select(table).order_by(*table.primary_key.columns)
                )
                for table in tables.metadata.sorted_tables
            }

        return await self.sql(read)

    async def sql(self, work: SQL[T]) -> T:
        async with self.store.transaction() as transaction:
            assert isinstance(transaction, RecordsTransaction)
            return await work(transaction)


def local_media(root: Path) -> Media:
    local = LocalMedia(root, BASE_URL, [bytes(32)])
    return Media(local, local, local)


async def opened_harness(store: Store, clock: VirtualClock, media: Media = NO_MEDIA) -> Harness:
    ids, entropy = SequentialIds(), RepeatableEntropy()
    box = AesGcmBox([bytes(32)], entropy)
    service = assemble(store, SystemPorts(clock, ids, entropy, box), RULES, media)
    account = Factory(ids, clock).account()
    async with store.transaction() as transaction:
        await transaction.accounts.add(account)
    return Harness(store, clock, ids, box, media, service, account, Factory.owner(account.id))
