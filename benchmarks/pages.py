"""How long the server takes for each settings page with a million deliveries in the store.

Beside it stands the same page with ten thousand. Measured in process, from the request to the last
byte of the answer, without a network; the embedded store, nothing cached between two requests. It
is the time of the processor: whatever else a shared machine does at that moment is not the page's.
"""

import asyncio
import json
import re
import statistics
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from time import process_time

import httpx2
import sqlalchemy as sa
import uvloop

from benchmarks.figures import Comparison
from cuepost.adapters.secret_box import AesGcmBox
from cuepost.adapters.storage.sqlite import SqliteStore
from cuepost.adapters.storage.tables import deliveries
from cuepost.adapters.storage.transaction import RecordsTransaction
from cuepost.adapters.system_clock import SystemIds, system_entropy
from cuepost.application.service import Ambient, Rules, Service, assemble, inbox_prefix
from cuepost.domain.access import Caller, Door
from cuepost.domain.egress_policy import EgressPolicy
from cuepost.domain.ids import lowest_at
from cuepost.doors.rest.app import create_app
from cuepost.doors.rest.open_pages import HealthChecks
from cuepost.doors.web.app import create_pages
from cuepost.testing import START, VirtualClock
from tests.history.filling import Expected, Month, fill, month_of
from tests.support.records import Records

MANY, FEW = 1_000_000, 10_000
ROUNDS = 40
BASE_URL = "https://cuepost.example.com"
OPERATOR = Caller(Door.CLI, "operator", None, frozenset())
TOKEN = re.compile(r'name="_token" value="([^"]+)"')


async def compare() -> list[Comparison]:
    few, many = await measured(FEW), await measured(MANY)
    return [
        Comparison(f"{name}, p95", "ms", many[name], f"{FEW:,} deliveries", few[name])
        for name in many
    ]


async def measured(rows: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        async with filled(Path(folder) / "cuepost.db", rows) as (service, month, store):
            return await measure(service, month, store)


@asynccontextmanager
async def filled(path: Path, rows: int) -> AsyncIterator[tuple[Service, Month, SqliteStore]]:
    clock, records = VirtualClock(START), Records()
    store = SqliteStore(path, clock)
    await store.open()
    month = month_of(records, rows)
    await fill(store, records, month, Expected())
    await add_attempts(store, records, month)
    box = AesGcmBox([bytes(32)], system_entropy)
    rules = Rules(BASE_URL, EgressPolicy(inbox_prefix=inbox_prefix(BASE_URL)))
    service = assemble(store, Ambient(clock, SystemIds(), system_entropy, box), rules)
    yield service, month, store
    await store.close()


async def add_attempts(store: SqliteStore, records: Records, month: Month) -> None:
    """One for each delivery of the last day, which is what the charts look at."""
    last_day = sa.and_(
        deliveries.c.account_id == month.account.id,
        deliveries.c.id >= lowest_at(START - timedelta(days=1)),
        deliveries.c.final_status.is_not(None),
    )
    async with store.transaction() as transaction:
        assert isinstance(transaction, RecordsTransaction)
        session = transaction._session  # noqa: SLF001  # no use case writes history so
        found = await session.all(sa.select(deliveries.c.id).where(last_day))
        await session.run(sa.update(deliveries).where(last_day).values(attempt_count=1))
        for row in found:
            delivery = records.delivery(month.account.id, id=row.id)
            await transaction.attempts.add([records.attempt(delivery)])


async def measure(service: Service, month: Month, store: SqliteStore) -> dict[str, float]:
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
        return {name: await p95(client, path) for name, path in paths.items()}


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
        "projects": "/settings/projects",
        "keys": "/settings/keys",
        "audit trail": "/settings/audit",
        "event catalogue": "/settings/event-types",
    }


async def p95(client: httpx2.AsyncClient, path: str) -> float:
    times = []
    for _ in range(ROUNDS):
        began = process_time()
        answer = await client.get(path)
        times.append((process_time() - began) * 1000)
        assert answer.status_code == 200, (path, answer.status_code)
    return statistics.quantiles(times, n=20)[-1]


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        figures = [asdict(each) | {"ratio": each.ratio} for each in runner.run(compare())]
    print(json.dumps(figures, indent=2))
