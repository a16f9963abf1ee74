"""What a page costs: the statements that really ran, their plans, and the work they did."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Protocol
from unittest.mock import patch
from uuid import UUID

import asyncpg

from cuepost.adapters.storage.postgres import PostgresStore
from cuepost.adapters.storage.postgres_connecting import Driver
from cuepost.adapters.storage.postgres_session import PostgresSession
from cuepost.adapters.storage.sqlite import SqliteStore
from cuepost.adapters.storage.transaction import RecordsTransaction
from cuepost.ports.store import Store, Transaction

Read = Callable[[Transaction], Awaitable[Sequence[Any]]]
Statements = list[tuple[str, Sequence[Any]]]
BIG = ("deliveries", "events", "queue")
# The progress handler is called once per this number of virtual machine instructions.
STEP = 10
EXECUTIONS_BEFORE_A_SHARED_PLAN = 5
_TABLES = (
    "SELECT relname FROM pg_class "
    "WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace"
)


@dataclass(frozen=True, slots=True)
class Cost:
    """`work` is virtual instructions on SQLite and buffers on PostgreSQL; both repeat exactly."""

    ids: list[UUID]
    work: int
    rows_examined: int = 0
    faults: list[str] = field(default_factory=list)


class Costs(Protocol):
    async def of(self, read: Read) -> Cost: ...


@contextmanager
def _overheard(heard: Statements) -> Iterator[None]:
    fetch = asyncpg.Connection.fetch

    async def heard_fetch(self: Any, query: str, *values: Any, **options: Any) -> Any:
        heard.append((query, values))
        return await fetch(self, query, *values, **options)

    with patch.object(asyncpg.Connection, "fetch", heard_fetch):
        yield


async def _ids(store: Store, read: Read) -> list[UUID]:
    async with store.snapshot() as transaction:
        return [each.id for each in await read(transaction)]


@dataclass(slots=True)
class SqliteCosts:
    """SQLite is never told to gather statistics, so the plans must be right without them."""

    store: SqliteStore

    async def of(self, read: Read) -> Cost:
        driver, calls, heard = self.store._readers[-1], count(), list[str]()

        def tick() -> int:
            next(calls)
            return 0

        driver.set_progress_handler(tick, STEP)
        driver.set_trace_callback(heard.append)
        try:
            ids = await _ids(self.store, read)
        finally:
            driver.set_trace_callback(None)
            driver.set_progress_handler(None, 0)
        selects = [each for each in heard if each.lstrip().startswith(("SELECT", "WITH"))]
        assert selects
        faults = [fault for each in selects for fault in self._faults(each)]
        return Cost(ids, next(calls) * STEP, faults=faults)

    def _faults(self, statement: str) -> Iterator[str]:
        driver = self.store._readers[-1]
        plan = driver.execute(f"EXPLAIN QUERY PLAN {statement}").fetchall()
        # What is in flight fits the memory of the processes that send it, and may be sorted.
        few = any("USING INDEX queue_in_flight" in step for *_, step in plan)
        for *_, step in plan:
            scans = any(step.startswith(f"SCAN {table}") for table in BIG)
            sorts = "TEMP B-TREE FOR ORDER BY" in step and not few
            if scans or sorts or "AUTOMATIC" in step:
                yield f"{step} in {statement}"


@dataclass(slots=True)
class PostgresCosts:
    """Explained on the store's own connections, as often as the server needs to settle on a plan
    for any values, if it ever does."""

    store: PostgresStore

    async def of(self, read: Read) -> Cost:
        heard = Statements()
        with _overheard(heard):
            ids = await _ids(self.store, read)
        plans = [await self._explained(*each) for each in heard]
        assert plans
        nodes = [node for plan in plans for node in _nodes(plan["Plan"])]
        return Cost(
            ids,
            work=sum(_buffers(plan["Plan"]) for plan in plans),
            rows_examined=sum(_examined(node) for node in nodes),
            faults=[fault for node in nodes for fault in _faults(node)],
        )

    async def _explained(self, statement: str, parameters: Sequence[Any]) -> dict[str, Any]:
        values = ", ".join(_literal(each) for each in parameters)
        async with driver_in(self.store.snapshot()) as driver:
            await driver.execute(f"PREPARE page AS {statement}")
            try:
                for _ in range(EXECUTIONS_BEFORE_A_SHARED_PLAN):
                    await driver.execute(f"EXECUTE page({values})")
                found = await driver.fetchval(
                    f"EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) EXECUTE page({values})"
                )
            finally:
                await driver.execute("DEALLOCATE page")
        [plan] = json.loads(found)
        assert isinstance(plan, dict)
        return plan


@asynccontextmanager
async def driver_in(opened: AbstractAsyncContextManager[Transaction]) -> AsyncIterator[Driver]:
    async with opened as transaction:
        assert isinstance(transaction, RecordsTransaction)
        assert isinstance(transaction.session, PostgresSession)
        yield transaction.session.driver


async def gather_statistics(store: PostgresStore) -> None:
    """As autovacuum does: of each partition, and never of the whole."""
    async with driver_in(store.transaction()) as driver:
        for row in await driver.fetch(_TABLES):
            await driver.execute(f"ANALYZE {row['relname']}")


def _literal(value: object) -> str:
    if isinstance(value, list):
        return "'{" + ", ".join(str(each) for each in value) + "}'"
    return str(value) if isinstance(value, int) else f"'{value}'"


def _nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("Plans", ()):
        yield from _nodes(child)


def _buffers(node: dict[str, Any]) -> int:
    return int(node["Shared Hit Blocks"] + node["Shared Read Blocks"])


def _examined(node: dict[str, Any]) -> int:
    """Rows that a scan looked at, those included that it then left out."""
    if not node.get("Relation Name", "").startswith(BIG):
        return 0
    removed = sum(value for name, value in node.items() if name.startswith("Rows Removed by"))
    return int((node["Actual Rows"] + removed) * node["Actual Loops"])


def _faults(node: dict[str, Any]) -> Iterator[str]:
    kind, rows = node["Node Type"], round(node["Actual Rows"] * node["Actual Loops"])
    if kind == "Seq Scan" and _examined(node) > 0:
        yield f"Seq Scan on {node['Relation Name']}, {_examined(node)} rows"
    for child in node.get("Plans", ()) if kind in ("Sort", "Incremental Sort") else ():
        if child["Actual Rows"] * child["Actual Loops"] > 50:
            yield f"Sort of {child['Actual Rows']} rows for {rows}"
