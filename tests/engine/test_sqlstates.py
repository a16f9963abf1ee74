"""Whatever error PostgreSQL raises in whichever loop of the engine: the loop goes on after it.

The errors are raised by the server itself. `CUEPOST_TEST_SQLSTATES=all` takes one code of every
class that PostgreSQL documents.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

import pytest
import sqlalchemy as sa

from cuepost.adapters.storage.tables import idempotency_keys
from cuepost.domain.delivery import DeliveryStatus
from cuepost.engine.dispatcher import Dispatcher
from cuepost.engine.maintenance import IDEMPOTENCY_LIFE, MaintenanceJob, MaintenanceRunner
from cuepost.engine.retention import Expiry
from cuepost.engine.watchdog import Watchdog
from cuepost.ports.retention import Expiring
from cuepost.ports.telemetry import NoTelemetry
from tests.support.engine_harness import DAY, EngineHarness, RunScenarios
from tests.support.other_process import OtherProcess

# 00 and 01 are no errors.
EVERY_CLASS = (
    "02000", "03000", "08006", "09000", "0A000", "0B000", "0F000", "0L000", "0P000", "0Z000",
    "20000", "21000", "22012", "23514", "24000", "25006", "26000", "27000", "28000", "2B000",
    "2D000", "2F000", "34000", "38000", "39000", "3B000", "3D000", "3F000", "40001", "42P01",
    "44000", "53100", "54000", "55P03", "57P01", "58030", "72000", "F0000", "HV000", "P0001",
    "XX000",
)  # fmt: skip
# One that the driver takes for a warning, contention, a fault of ours, and a server in trouble.
A_FEW = ("02000", "40001", "42P01", "58030")
CODES = EVERY_CLASS if os.environ.get("CUEPOST_TEST_SQLSTATES") == "all" else A_FEW
LEASE, SECOND = timedelta(seconds=10), timedelta(seconds=1)
# A result that was set aside is sent again after a minute.
MOST_SECONDS = 200


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop, with the change that it makes or the table that it reads, and what it then logs."""

    name: str
    table: str
    change: str | None
    logged: str

    def refuse(self, code: str) -> Sequence[str]:
        raised = (
            "BEGIN PERFORM nextval('refusals'); "
            f"RAISE EXCEPTION 'refused on purpose' USING ERRCODE = '{code}'; END"
        )
        if self.change is None:
            return (
                f"CREATE FUNCTION refuse() RETURNS boolean LANGUAGE plpgsql AS $${raised}$$",
                f"ALTER TABLE {self.table} RENAME TO hidden",
                f"CREATE VIEW {self.table} AS SELECT * FROM hidden WHERE refuse()",
            )
        before = f"BEFORE {self.change} ON {self.table}"
        return (
            f"CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $${raised}$$",
            f"CREATE TRIGGER refusing {before} EXECUTE FUNCTION refuse()",
        )

    def allow(self) -> Sequence[str]:
        if self.change is None:
            shown = f"ALTER TABLE hidden RENAME TO {self.table}"
            return (f"DROP VIEW {self.table}", shown, "DROP FUNCTION refuse()")
        return (f"DROP TRIGGER refusing ON {self.table}", "DROP FUNCTION refuse()")


LOOPS = (
    Loop("claim", "queue", "UPDATE", "claim_failed"),
    Loop("heartbeat", "workers", "UPDATE", "heartbeat_failed"),
    Loop("recorder", "deliveries", "INSERT", "outcomes_not_recorded"),
    Loop("hand-over", "events", None, "handed_over_not_read"),
    Loop("maintenance", "idempotency_keys", "DELETE", "maintenance_job_failed"),
    Loop("watchdog", "alembic_version", None, ""),
)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.name)
def test_the_loop_goes_on(
    run_postgres: RunScenarios, loop: Loop, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        await engine.sql(sa.text("CREATE SEQUENCE refusals"))
        try:
            await engine.harness.endpoint()
            async with everything_at_work(engine) as dispatcher:
                engine.store.handover = OtherProcess(dispatcher.hand_over)
                for code in CODES:
                    await disturb(engine, dispatcher, loop, code)
            assert not await old_keys(engine)
        finally:
            await engine.sql(sa.text("DROP SEQUENCE refusals"))

    run_postgres(scenario)
    assert not loop.logged or f"event={loop.logged} " in caplog.text


async def disturb(engine: EngineHarness, dispatcher: Dispatcher, loop: Loop, code: str) -> None:
    # The lane is held by now, and accepts what is booked for it elsewhere.
    if loop.name == "hand-over":
        await settle(engine, dispatcher)
    else:
        engine.store.handover = OtherProcess(lambda *_: None)
    before = await refusals(engine)
    await add_old_key(engine, code)
    for statement in loop.refuse(code):
        await engine.sql(sa.text(statement))
    try:
        await engine.harness.complete()
        for _ in range(MOST_SECONDS):
            dispatcher.work_for(await engine.lanes())
            await engine.later(SECOND)
            if await refusals(engine) > before:
                break
        else:
            pytest.fail(f"{loop.name} has not met {code}")
    finally:
        for statement in loop.allow():
            await engine.sql(sa.text(statement))
    await settle(engine, dispatcher)


async def settle(engine: EngineHarness, dispatcher: Dispatcher) -> None:
    """Everything is delivered, what is booked from now on as well."""
    await engine.harness.complete()
    for _ in range(MOST_SECONDS):
        dispatcher.work_for(await engine.lanes())
        await engine.later(SECOND)
        deliveries = await engine.harness.deliveries()
        if {each.status for each in deliveries} == {DeliveryStatus.DELIVERED}:
            return
    pytest.fail(f"not all are delivered: {deliveries}")


@asynccontextmanager
async def everything_at_work(engine: EngineHarness) -> AsyncIterator[Dispatcher]:
    worker = engine.dispatcher(lease=LEASE, longest_sleep=5 * SECOND)
    expiry = Expiry(engine.store, engine.clock)
    job = MaintenanceJob(
        "forget idempotency keys",
        SECOND,
        lambda: expiry.step(Expiring.IDEMPOTENCY_KEYS, IDEMPOTENCY_LIFE),
    )
    async with engine.delivering(worker, direct=False), asyncio.TaskGroup() as tasks:
        watchdog = Watchdog(worker, engine.store, engine.clock, NoTelemetry())
        loops = (watchdog.run(), MaintenanceRunner(engine.clock, [job]).run())
        beside = [tasks.create_task(loop) for loop in loops]
        yield worker
        for task in beside:
            assert not task.done()
            task.cancel()


async def refusals(engine: EngineHarness) -> int:
    """A sequence does not go back with what was undone."""
    question = "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM refusals"
    [row] = await engine.rows(sa.text(question))
    return int(row[0])


async def add_old_key(engine: EngineHarness, name: str) -> None:
    await engine.sql(
        sa.insert(idempotency_keys).values(
            account_id=engine.harness.account.id,
            key_id=engine.harness.account.id,
            key=name,
            fingerprint=b"",
            created_at=engine.clock.now() - 2 * DAY,
        )
    )


async def old_keys(engine: EngineHarness) -> Sequence[sa.Row[tuple[str]]]:
    await engine.later(2 * SECOND)
    return await engine.rows(sa.select(idempotency_keys.c.key))
