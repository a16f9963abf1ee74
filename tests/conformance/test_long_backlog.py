"""Claims and records beside a long backlog read no more than they need, whatever the planner
believes."""

import re
from datetime import timedelta
from functools import partial
from uuid import UUID

import sqlalchemy as sa

from cuepost.adapters.storage.postgres import _HOT_WRITE, PostgresStore
from cuepost.adapters.storage.postgres_connecting import Driver
from cuepost.adapters.storage.postgres_writes import OFTEN_EQUAL, Shape, together
from cuepost.adapters.storage.records.postgres_outcomes import OPEN_AND_HEALTH, end_leased
from cuepost.adapters.storage.records.postgres_queue import HOLD_AND_FIND_DUE, LEASE_WITH_FACTS
from cuepost.adapters.storage.row_writes import RowWrite, deleted, updated
from cuepost.adapters.storage.sql import Sql
from cuepost.adapters.storage.tables import endpoints
from cuepost.adapters.storage.transaction import RecordsTransaction
from cuepost.ports.dispatch import Claim, Claimed, Lane
from cuepost.ports.store import Priority, Transaction
from tests.history.costs import EXECUTIONS_BEFORE_A_SHARED_PLAN, driver_in
from tests.support.records import Records
from tests.support.store_rows import introduce, rows, run

OVERDUE = 3_000
HEALTHY = 30
ROOM = 100
# A few times what it gets: those that are due first, a share of each lane, and what it leases.
MOST_ROWS_READ = 800
READ = Sql(
    "SELECT seq_tup_read + idx_tup_fetch AS read "
    "FROM pg_stat_xact_user_tables WHERE relname = 'queue'"
)
MADE_EMPTY = "TRUNCATE queue, deliveries, events, attempts; ANALYZE queue, deliveries, events"
LARGE_TABLES = re.compile(r"Scan .*on (queue|(deliveries|events)_\w+)")
BOTH_KEYS = re.compile(r"Index Cond: \(\(account = .+\) AND \(id = ")
ENDING = [end_leased(equal) for equal in ((), OFTEN_EQUAL["deliveries"])]
LAST = UUID(int=2**128 - 1)
PLANNED = sa.text("SELECT statement, custom_plans FROM pg_prepared_statements")


async def queue_up(store: PostgresStore, records: Records, account_id: UUID, count: int) -> Lane:
    """Queue deliveries to a new endpoint, due now, and return its lane."""
    endpoint = records.endpoint(account_id)
    now = records.clock.now()
    events = [records.event(account_id) for _ in range(count)]
    made = [
        records.delivery(account_id, webhook_id=endpoint.id, event_id=event.id, next_attempt_at=now)
        for event in events
    ]
    async with store.transaction() as transaction:
        await introduce(transaction, account_id)
        await transaction.endpoints.add(endpoint, records.secret())
        await transaction.events.add(events)
        await transaction.deliveries.add(made)
    lane = sa.select(endpoints.c.number).where(endpoints.c.id == endpoint.id)
    [row] = await rows(store, lane)
    return int(row.number)


async def test_few_rows_are_read(postgres_store: PostgresStore, records: Records) -> None:
    account_id = records.id()
    late = await queue_up(postgres_store, records, account_id, OVERDUE)
    records.clock.advance(hours=1)
    healthy = [await queue_up(postgres_store, records, account_id, 1) for _ in range(HEALTHY)]
    # From here on it knows that nearly all that waits is the late endpoint's.
    await run(postgres_store, sa.text("ANALYZE queue"))

    claimed, rows_read = await claim(postgres_store, records, set(healthy))

    assert {each.lane for each in claimed.assignments} == {late, *healthy}
    assert len(claimed.assignments) == ROOM
    assert rows_read <= MOST_ROWS_READ


async def test_results_are_not_looked_for_among_all_leases(
    postgres_store: PostgresStore, records: Records
) -> None:
    """Their index has entries of leases that ended long ago, until someone has swept the queue."""
    await queue_up(postgres_store, records, records.id(), OVERDUE)
    await run(postgres_store, sa.text("ANALYZE queue"))
    async with driver_in(postgres_store.snapshot()) as driver:
        await driver.execute("SET LOCAL enable_seqscan = off")
        await driver.execute("SET LOCAL plan_cache_mode = force_generic_plan")
        for statement in (OPEN_AND_HEALTH, *ENDING):
            steps = await planned(driver, statement.postgresql.text)
            assert any("queue_pkey" in step for step in steps)
            assert not any("queue_in_flight" in step for step in steps)


async def test_results_are_compared_with_endpoints_in_trouble_only(
    postgres_store: PostgresStore,
) -> None:
    """In a group for many endpoints each would otherwise be compared with all of them."""
    async with driver_in(postgres_store._begin(_HOT_WRITE)) as driver:
        for statement in (OPEN_AND_HEALTH, *ENDING):
            steps = await planned(driver, statement.postgresql.text)
            assert any("CTE Scan on troubled" in step for step in steps)


async def test_what_is_announced_is_claimed_without_being_planned_again(
    postgres_store: PostgresStore, records: Records
) -> None:
    """Beside such a queue the server would make a plan for the values of each claim."""
    account_id, worker = records.id(), records.id()

    async def claim(wanted: Claim, transaction: Transaction) -> Claimed:
        return await transaction.queue.claim(wanted, records.clock.now())

    await queue_up(postgres_store, records, account_id, OVERDUE)
    await run(postgres_store, sa.text("ANALYZE queue"))
    before = await plans_made_for_claims(postgres_store)
    for _ in range(2 * EXECUTIONS_BEFORE_A_SHARED_PLAN):
        woken = [await queue_up(postgres_store, records, account_id, 1)]
        wanted = Claim(worker, ROOM, lambda _: ROOM, woken=woken, scan_after=None)
        claimed = await postgres_store.write(partial(claim, wanted), Priority.BACKGROUND)
        assert [each.lane for each in claimed.assignments] == woken

    assert await plans_made_for_claims(postgres_store) == before


async def plans_made_for_claims(store: PostgresStore) -> int:
    """For the values of one of them each."""
    texts = [each.postgresql.text for each in (HOLD_AND_FIND_DUE, LEASE_WITH_FACTS)]
    planned = await rows(store, PLANNED)
    return sum(each.custom_plans for each in planned if each.statement in texts)


async def test_rows_are_looked_up_by_their_keys_though_the_store_was_empty_when_that_was_planned(
    postgres_store: PostgresStore,
) -> None:
    """The plan is kept while the store fills up, until the server has looked at it again."""
    statements = [
        LEASE_WITH_FACTS.postgresql.text,
        OPEN_AND_HEALTH.postgresql.text,
        *(each.postgresql.text for each in ENDING),
        written(deleted("queue", "account", "id")),
        written(updated("queue", ("account", "id"), "attempts_made")),
    ]
    async with driver_in(postgres_store._begin(_HOT_WRITE)) as driver:
        await driver.execute(MADE_EMPTY)
        for statement in statements:
            steps = await planned(driver, statement)
            scans = [place for place, step in enumerate(steps) if LARGE_TABLES.search(step)]
            assert scans
            for place in scans:
                assert "Index Scan using" in steps[place]
                assert BOTH_KEYS.search(steps[place + 1])


def written(to: RowWrite) -> str:
    return together((Shape(to, OFTEN_EQUAL.get(to.table, ())),))


async def planned(driver: Driver, statement: str) -> list[str]:
    """For values that it does not know; the bounds leave out no partition."""
    count = max(int(place) for place in re.findall(r"\$(\d+)", statement))
    values = ["NULL"] * count
    for first, last in re.findall(r"BETWEEN \$(\d+)\S* AND \$(\d+)", statement):
        values[int(first) - 1], values[int(last) - 1] = f"'{UUID(int=0)}'", f"'{LAST}'"
    await driver.execute(f"PREPARE kept AS {statement}")
    plan = await driver.fetch(f"EXPLAIN EXECUTE kept({', '.join(values)})")
    await driver.execute("DEALLOCATE kept")
    return [step for (step,) in plan]


async def claim(store: PostgresStore, records: Records, woken: set[Lane]) -> tuple[Claimed, int]:
    worker, now = records.id(), records.clock.now()
    async with store.transaction() as transaction:
        assert isinstance(transaction, RecordsTransaction)
        # As in a table that is too long to be read from one end to the other.
        for way in ("seqscan", "hashjoin", "mergejoin"):
            await transaction.session.fetch(Sql(f"SET LOCAL enable_{way} = off"))
        await transaction.queue.register_worker(worker, now + timedelta(minutes=1))
        claimed = await transaction.queue.claim(
            Claim(worker, ROOM, lambda _: ROOM, woken=woken), now
        )
        [(rows_read,)] = await transaction.session.fetch(READ)
    return claimed, rows_read
