"""Server time of each settings page with a million deliveries in the store.

Measured in process on both stores, as wall time from the request to the last byte of the answer;
the baseline is the same page with ten thousand deliveries. Nothing is cached between two requests.
The notes have the median and the CPU time, and mark pages over the limit: other work of the machine
affects p95 of the wall time.
"""

import asyncio
import re
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from time import perf_counter, process_time

import click
import httpx2
import sqlalchemy as sa
import uvloop

from benchmarks.figures import Comparison, percentile
from cuepost.adapters.secret_box import AesGcmBox
from cuepost.adapters.storage.postgres import PostgresStore
from cuepost.adapters.storage.sqlite import SqliteStore
from cuepost.adapters.storage.tables import accounts, deliveries
from cuepost.adapters.system_clock import SystemIds, system_entropy
from cuepost.application.service import Rules, Service, SystemPorts, assemble, inbox_prefix
from cuepost.domain.access import Caller, Interface
from cuepost.domain.egress_policy import EgressPolicy
from cuepost.domain.instants import lowest_at
from cuepost.interfaces.rest.app import create_app
from cuepost.interfaces.rest.open_pages import HealthChecks
from cuepost.interfaces.web.app import create_pages
from cuepost.testing import START, VirtualClock
from tests.history.costs import gather_statistics
from tests.history.filling import DAYS, Expected, Month, fill, month_of
from tests.support.postgres import PostgresServer, fresh_database
from tests.support.records import Records
from tests.support.store_rows import attempt_columns, run

MANY, FEW = 1_000_000, 10_000
# Requests per page, and the fewest if they would take longer than MOST_SECONDS.
ROUNDS, FEWEST_ROUNDS, MOST_SECONDS = 60, 20, 6.0
LIMIT_MILLIS = 50.0
BASE_URL = "https://cuepost.example.com"
OPERATOR = Caller(Interface.CLI, "operator", None, frozenset())
TOKEN = re.compile(r'name="_token" value="([^"]+)"')

AnyStore = SqliteStore | PostgresStore


@dataclass(frozen=True, slots=True)
class Taken:
    """In milliseconds: p95 and median of the wall time, and p95 of the CPU time."""

    wall: float
    median: float
    processor: float

    @property
    def notes(self) -> str:
        verdict = f", over {LIMIT_MILLIS:.0f} ms" if self.wall > LIMIT_MILLIS else ""
        return f"median {self.median:.1f} ms, processor {self.processor:.1f} ms{verdict}"


@asynccontextmanager
async def on_sqlite() -> AsyncIterator[SqliteStore]:
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "cuepost.db", VirtualClock(START))
        await store.open()
        yield store
        await store.close()


@asynccontextmanager
async def on_postgres() -> AsyncIterator[PostgresStore]:
    with PostgresServer() as server:
        async with fresh_database(server.url) as url:
            store = PostgresStore(url)
            for days in range(DAYS, -1, -10):
                await store.migrate(START - timedelta(days=days))
            yield store
            await store.close()


STORES: dict[str, Callable[[], AbstractAsyncContextManager[AnyStore]]] = {
    "SQLite": on_sqlite,
    "PostgreSQL": on_postgres,
}


async def compare(rows: int = MANY, stores: Sequence[str] = tuple(STORES)) -> list[Comparison]:
    found: list[Comparison] = []
    for name in stores:
        few, many = await measured(name, min(FEW, rows)), await measured(name, rows)
        found += [
            Comparison(
                f"{page}, {name}, p95",
                "ms",
                taken.wall,
                f"{min(FEW, rows):,} deliveries",
                few[page].wall,
                taken.notes,
            )
            for page, taken in many.items()
        ]
    return found


async def measured(name: str, count: int) -> dict[str, Taken]:
    async with STORES[name]() as store:
        records = Records()
        month = month_of(records, count)
        await fill(store, records, month, Expected())
        await add_attempts(store, records, month)
        if isinstance(store, PostgresStore):
            await gather_statistics(store)
        box = AesGcmBox([bytes(32)], system_entropy)
        system = SystemPorts(VirtualClock(START), SystemIds(), system_entropy, box)
        rules = Rules(BASE_URL, EgressPolicy(inbox_prefix=inbox_prefix(BASE_URL)))
        return await measure(assemble(store, system, rules), month, store)


async def add_attempts(store: AnyStore, records: Records, month: Month) -> None:
    """Adds the last attempt of each delivery of the last day, which the charts read."""
    made = records.attempt(records.delivery(month.account.id))
    number = sa.select(accounts.c.number).where(accounts.c.id == month.account.id)
    last_day = sa.and_(
        deliveries.c.account == number.scalar_subquery(),
        deliveries.c.id >= lowest_at(START - timedelta(days=1)),
    )
    await run(
        store,
        sa.update(deliveries).where(last_day).values(attempt_columns(made) | {"attempt_count": 1}),
    )


async def measure(service: Service, month: Month, store: AnyStore) -> dict[str, Taken]:
    app = create_app(
        service,
        base_url=BASE_URL,
        health=HealthChecks(store.check),
        further_routes=create_pages(service, base_url=BASE_URL),
    )
    transport = httpx2.ASGITransport(app)
    async with httpx2.AsyncClient(transport=transport, base_url=BASE_URL) as client:
        await sign_in(client, service, month)
        paths = await pages(client, month)
        return {name: await taken_by(client, path) for name, path in paths.items()}


async def sign_in(client: httpx2.AsyncClient, service: Service, month: Month) -> None:
    link = await service.perform.change(
        lambda transaction: service.sign_in.make_link(transaction, OPERATOR, month.account.id)
    )
    token = TOKEN.findall((await client.get(link.url)).text)[0]
    await client.post(link.url, data={"_token": token}, headers={"origin": BASE_URL})


async def pages(client: httpx2.AsyncClient, month: Month) -> dict[str, str]:
    webhook = f"/settings/webhooks/{month.names.busy_endpoint}"
    everything = "/settings/deliveries"
    listed = (await client.get(f"{webhook}/deliveries?status=delivered")).text
    delivery = re.findall(rf'href="({webhook}/deliveries/[0-9a-f-]+)"', listed)[0]
    return {
        "overview of a day": "/settings",
        "overview of 30 days": "/settings?range=30d",
        "endpoints": "/settings/webhooks",
        "an endpoint": webhook,
        "deliveries": everything,
        "deliveries of an endpoint": f"{webhook}/deliveries",
        "failed deliveries": f"{everything}?status=failed",
        "retrying deliveries": f"{everything}?status=retrying",
        "deliveries of a project": f"{everything}?project={month.names.rare_project}",
        "by outcome, found at once": f"{everything}?outcome=http_error",
        "by outcome, never found": f"{everything}?outcome=tls_error",
        "a delivery": delivery,
        "events": "/settings/events",
        "events of a project": f"/settings/events?project={month.names.rare_project}",
        "an event": f"/settings/events/{month.names.small_event}",
        "projects": "/settings/projects",
        "keys": "/settings/keys",
        "audit trail": "/settings/audit",
        "event catalogue": "/settings/event-types",
    }


async def taken_by(client: httpx2.AsyncClient, path: str) -> Taken:
    """The first request does not count, because it compiles the template."""
    assert (await client.get(path)).status_code == 200, path
    wall: list[float] = []
    processor: list[float] = []
    began = perf_counter()
    while len(wall) < ROUNDS:
        if len(wall) >= FEWEST_ROUNDS and perf_counter() - began > MOST_SECONDS:
            break
        at, used = perf_counter(), process_time()
        answer = await client.get(path)
        wall.append((perf_counter() - at) * 1000)
        processor.append((process_time() - used) * 1000)
        assert answer.status_code == 200, (path, answer.status_code)
    return Taken(percentile(wall, 95), percentile(wall, 50), percentile(processor, 95))


@click.command()
@click.option("--deliveries", default=MANY, show_default=True, help="Deliveries in the store.")
@click.option("--store", "stores", multiple=True, type=click.Choice(list(STORES)))
def main(deliveries: int, stores: Sequence[str]) -> None:
    """Measure p95 of each settings page, on these stores or on both."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        for each in runner.run(compare(deliveries, stores or tuple(STORES))):
            click.echo(
                f"{each.name:46} {each.measured:7.1f} ms  "
                f"{each.beside:7.1f} ms ({each.beside_name})  {each.notes}"
            )


if __name__ == "__main__":
    main()
