"""Who looks at what is there, and what time makes of it: pages, logs, metrics and expiry."""

import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from uuid import UUID

import sqlalchemy as sa
from prometheus_client import CollectorRegistry, generate_latest

from cuepost.adapters.storage.transaction import RecordsTransaction
from cuepost.adapters.telemetry import EngineTelemetry
from cuepost.domain.access import Caller
from cuepost.domain.errors import NotFound
from cuepost.engine.maintenance import JobSteps
from cuepost.engine.retention import Expiry
from cuepost.ports.history import DeliveryFilter, EventFilter
from cuepost.ports.records import AuditFilter, Page
from cuepost.ports.retention import Expiring
from cuepost.tuning import EXPIRED_ROWS_AT_ONCE
from tests.simulation.owners import Owners
from tests.support import core_statements
from tests.support.stored_history import STORED, Found

LOOKED_AT = Page(limit=50)
LOG, METRICS, PAGES = "the log", "the metrics", "what owners are shown"


class Listening(logging.Handler):
    def __init__(self, lines: list[str]) -> None:
        super().__init__()
        self._lines = lines
        self.setFormatter(logging.Formatter("%(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(self.format(record))


@dataclass(slots=True)
class Observers(Owners):
    _registry: CollectorRegistry = field(default_factory=CollectorRegistry)

    @contextmanager
    def overheard(self) -> Iterator[None]:
        """Every word of the log is kept, and metrics are counted."""
        logger, ear = logging.getLogger("cuepost"), Listening(self.ledger.shown[LOG])
        level, propagates = logger.level, logger.propagate
        self.engine.telemetry = EngineTelemetry(self._registry)
        logger.addHandler(ear)
        logger.setLevel(logging.DEBUG)
        logger.propagate = False
        try:
            yield
        finally:
            logger.removeHandler(ear)
            logger.setLevel(level)
            logger.propagate = propagates
            self.ledger.shown[METRICS].append(generate_latest(self._registry).decode())

    async def full_scan(self) -> None:
        """Everybody looks at all that is shown to them, and asks for something of someone else."""
        for caller in self.callers.values():
            with self.store_whole():
                await self._look(caller)
                await self._pry(caller)

    async def _look(self, caller: Caller) -> None:
        harness, ledger, account = self.engine.harness, self.ledger, caller.account
        service = harness.service
        endpoints = await harness.see(service.webhooks.page, caller, LOOKED_AT)
        projects = await harness.see(service.projects.page, caller, LOOKED_AT)
        events = await harness.see(service.history.events, caller, EventFilter(), LOOKED_AT)
        deliveries = await harness.see(
            service.history.deliveries, caller, DeliveryFilter(), LOOKED_AT
        )
        audit = await harness.see(service.history.audit, caller, AuditFilter(), LOOKED_AT)
        for view in endpoints:
            ledger.looked(account, "endpoint", view.endpoint.id)
        for project in projects:
            ledger.looked(account, "project", project.id)
        for found in events:
            ledger.looked(account, "event", found.event.id, found.event.project_id)
            for each in found.deliveries:
                ledger.looked(account, "verdict", each.webhook_id, each.event_id)
        for shown in deliveries:
            each = shown.delivery
            ledger.looked(account, "delivery", each.webhook_id, each.event_id, each.project_id)
        for entry in audit.entries:
            subject = entry.subject if entry.subject in ledger.owners else None
            ledger.looked(account, "entry", UUID(subject) if subject else None)
        ledger.shown[PAGES].append(repr([endpoints, projects, events, deliveries, audit]))

    async def _pry(self, caller: Caller) -> None:
        harness, service = self.engine.harness, self.engine.harness.service
        for calls, ids in (
            (service.webhooks.get, self.endpoints),
            (service.projects.get, self.projects),
        ):
            unknown = [each for each in ids if self.owner_of(each) != caller]
            if unknown:
                chosen = self.chance.choice(unknown)
                with suppress(NotFound):
                    await harness.see(calls, caller, chosen)
                    self.ledger.looked(caller.account, "stranger", chosen)

    async def run_maintenance(self) -> None:
        """One step of what the jobs do by themselves: nothing must depend on their pace."""
        harness = self.engine.harness
        steps = JobSteps(self.engine.store, harness.service, self.engine.clock)
        await self.surely(steps.stop_expired_projects)
        await self.surely(steps.purge_deleted_endpoints)
        for job in await self.surely(lambda: harness.see(lambda t: t.bulk_retries.running(10))):
            await self.surely(
                partial(harness.do, harness.service.redeliver.bulk_step, job.account_id, job.id, 3)
            )

    async def forget(self) -> None:
        """All that is older than a while, which is much shorter here than it is in life."""
        life = self.chance.choice((timedelta(minutes=2), self.horizon / 5))
        expiry = Expiry(self.engine.store, self.engine.clock)
        for what in Expiring:
            kept = timedelta(0) if what is Expiring.SECRETS else life
            if what is Expiring.HISTORY:
                await self.surely(lambda: self._delete_history(life))
            else:
                await self.surely(partial(expiry.step, what, kept))

    async def _delete_history(self, life: timedelta) -> None:
        async with self.looking_in() as (transaction, found):
            self.ledger.keep(found)
            before = self.now - life
            await transaction.retention.delete_before(
                Expiring.HISTORY, before, EXPIRED_ROWS_AT_ONCE
            )

    @asynccontextmanager
    async def looking_in(
        self,
    ) -> AsyncIterator[tuple[RecordsTransaction, Found]]:
        """All rows of deliveries, as of one moment, in a transaction that may go on."""
        async with self.engine.store.transaction() as transaction:
            assert isinstance(transaction, RecordsTransaction)
            session = transaction.session
            found = {
                table.name: await core_statements.all_rows(session, sa.select(table))
                for table in STORED
            }
            yield transaction, found
