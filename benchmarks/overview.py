"""The overview of an account with a long history, while its deliveries go on.

A member loads the overview at each range over HTTP from a service with default settings, at a
steady pace, while milestones arrive at a steady rate. In the end the figures of the page must
equal a full count of the history.
"""

import asyncio
import re
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from uuid import UUID

import httpx2
import sqlalchemy as sa

from benchmarks.backlog import add_history
from benchmarks.environment import Product, product
from benchmarks.figures import Figure, NotRun, percentile
from benchmarks.population import OPERATOR, settings_of
from benchmarks.sizes import Sizes
from benchmarks.stores import StoreChoice, on_each_store
from cuepost.adapters.storage.postgres import PostgresStore
from cuepost.adapters.storage.sqlite import SqliteStore
from cuepost.adapters.storage.tables import accounts, deliveries
from cuepost.application.delivery_figures import Range
from cuepost.bootstrap.container import running
from cuepost.domain.delivery import DeliveryStatus
from cuepost.domain.instants import lowest_at
from tests.support.store_rows import snapshot_rows

PATH = "/ok"
PAUSE_SECONDS = 0.1
CONNECTIONS = 8
TOKEN = re.compile(r'name="_token" value="([^"]+)"')
COUNT = re.compile(r"<dt>(Delivered|Failed|Cancelled)</dt><dd>([0-9,]+)</dd>")
ENDS = (DeliveryStatus.DELIVERED, DeliveryStatus.FAILED, DeliveryStatus.CANCELLED)


def measured(sizes: Sizes) -> Iterator[Figure | NotRun]:
    yield from on_each_store("overview", _measured_on, sizes)


def _measured_on(store: StoreChoice, sizes: Sizes) -> Iterator[Figure]:
    count = sizes.overview_rate * sizes.overview_seconds
    with product(store, paths=[PATH], projects=count, halves=()) as it:
        asyncio.run(add_history(it.settings, it.populated, [PATH], sizes.page_rows))
        store.settle(it.settings)
        it.start()
        base_url = f"http://127.0.0.1:{it.settings['PORT']}"
        with httpx2.Client(base_url=base_url, trust_env=False) as client:
            _sign_in(client, it)
            found, rate = _beside_deliveries(client, it, sizes)
            it.wait_until_settled()
            _require_exact(client, it)
        it.proved()
    p95 = max(percentile(each, 95) for each in found.values())
    raw = {f"p95 of {name}": percentile(each, 95) for name, each in found.items()}
    raw |= {f"p50 of {name}": percentile(each, 50) for name, each in found.items()}
    raw |= {"deliveries": sizes.page_rows + count, "deliveries/s": rate}
    what = f"overview on {store.name}, the slowest range, p95"
    yield Figure(f"overview.{store.key}", what, "ms", p95, raw)


def _beside_deliveries(
    client: httpx2.Client, it: Product, sizes: Sizes
) -> tuple[Mapping[str, list[float]], float]:
    found: dict[str, list[float]] = {each.value: [] for each in Range}
    with ThreadPoolExecutor(1) as thread:
        feeding = thread.submit(
            it.feed,
            it.populated.in_turn(),
            rate=sizes.overview_rate,
            connections=CONNECTIONS,
        )
        while not feeding.done():
            for name, taken in found.items():
                began = time.perf_counter()
                client.get("/settings", params={"range": name}).raise_for_status()
                taken.append(1_000 * (time.perf_counter() - began))
                time.sleep(PAUSE_SECONDS)
        fed = feeding.result()
    it.wait_for_events(fed.acknowledged)
    return found, len(fed.acknowledged) / fed.seconds


def _sign_in(client: httpx2.Client, it: Product) -> None:
    url = asyncio.run(_link(it))
    token = TOKEN.findall(client.get(url).text)[0]
    origin = str(client.base_url).rstrip("/")
    client.post(url, data={"_token": token}, headers={"origin": origin})


async def _link(it: Product) -> str:
    async with running(settings_of(it.settings)) as container:
        service = container.service
        link = await service.perform.change(
            lambda transaction: service.sign_in.make_link(
                transaction, OPERATOR, it.populated.account_of[PATH]
            )
        )
    return link.url


def _require_exact(client: httpx2.Client, it: Product) -> None:
    page = client.get("/settings", params={"range": Range.MONTH.value}).text
    shown = {name: int(count.replace(",", "")) for name, count in COUNT.findall(page)}
    counted = asyncio.run(_counted(it.settings, it.populated.account_of[PATH]))
    if shown != counted:
        raise AssertionError(f"the overview shows {shown}, the history has {counted}")


async def _counted(settings: Mapping[str, str], account_id: UUID) -> dict[str, int]:
    number = sa.select(accounts.c.number).where(accounts.c.id == account_id).scalar_subquery()
    async with running(settings_of(settings)) as container:
        since = _first_day(container.system.clock.now())
        history = (
            sa.select(deliveries.c.status, sa.func.count())
            .where(deliveries.c.account == number, deliveries.c.id >= lowest_at(since))
            .group_by(deliveries.c.status)
        )
        assert isinstance(container.store, SqliteStore | PostgresStore)
        listed = [tuple(row) for row in await snapshot_rows(container.store, history)]
        found: dict[DeliveryStatus, int] = dict(listed)
    return {status.value.capitalize(): found.get(status, 0) for status in ENDS}


def _first_day(now: datetime) -> datetime:
    """The overview of 30 days begins at a midnight."""
    return now.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=29)
