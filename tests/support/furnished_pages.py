"""A service with an account that has seen something, one that has not, and one without access."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import uvicorn
from argon2 import PasswordHasher
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from cuepost.adapters.argon2_passwords import Argon2Passwords
from cuepost.adapters.media.local import LocalMedia
from cuepost.adapters.secret_box import AesGcmBox
from cuepost.adapters.storage.sqlite import SqliteStore
from cuepost.adapters.system_clock import SystemClock, SystemIds, system_entropy
from cuepost.application.service import Ambient, Rules, Service, assemble, inbox_prefix
from cuepost.domain.access import Account, Caller, Door
from cuepost.domain.egress_policy import EgressPolicy
from cuepost.doors.rest.app import create_app
from cuepost.doors.rest.open_pages import HealthChecks
from cuepost.doors.web.app import create_pages
from cuepost.doors.web.gate import Gate
from cuepost.doors.web.protection import Cookies
from cuepost.doors.web.visit import House, PageRoute, Visit
from cuepost.ports.media import Media
from tests.support.furniture import Furnisher
from tests.support.service_process import free_port

OPERATOR = Caller(Door.CLI, "operator:root", None, frozenset())
START_SECONDS = 20.0
CHEAP = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
BROKEN = "/settings/broken"


@dataclass
class Furnished:
    """`paths` are those of the furnished account, by name; the others share what needs no id."""

    base_url: str
    service: Service
    store: SqliteStore
    loop: asyncio.AbstractEventLoop
    account: Account
    empty: Account
    closed: Account
    paths: dict[str, str] = field(default_factory=dict)

    def sign_in_link(self, account: Account | None = None) -> str:
        async def make() -> str:
            link = await self.service.perform.change(
                lambda t: self.service.sign_in.make_link(t, OPERATOR, (account or self.account).id)
            )
            return link.url

        return asyncio.run_coroutine_threadsafe(make(), self.loop).result(START_SECONDS)


@contextmanager
def furnished(folder: Path) -> Iterator[Furnished]:
    """Served from a thread of this process, over real HTTP."""
    base_url = f"http://127.0.0.1:{free_port()}"
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    opening = _opened(folder, base_url, loop)
    house = asyncio.run_coroutine_threadsafe(opening, loop).result(START_SECONDS)
    server = _server(house)
    serving = asyncio.run_coroutine_threadsafe(server.serve(), loop)
    try:
        yield house
    finally:
        server.should_exit = server.force_exit = True
        serving.result(START_SECONDS)
        asyncio.run_coroutine_threadsafe(house.store.close(), loop).result(START_SECONDS)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(START_SECONDS)
        loop.close()


def _server(house: Furnished) -> uvicorn.Server:
    pages = create_pages(
        house.service,
        base_url=house.base_url,
        is_stopping=lambda: server.should_exit,
    )
    app = create_app(
        house.service,
        base_url=house.base_url,
        health=HealthChecks(house.store.check),
        further_routes=[_broken_page(house), *pages],
    )
    port = int(house.base_url.rpartition(":")[2])
    server = uvicorn.Server(
        uvicorn.Config(app, port=port, ws="none", lifespan="off", log_config=None)
    )
    # Signals belong to the main thread.
    server.capture_signals = nullcontext  # type: ignore[method-assign,assignment]  # not here
    return server


def _broken_page(house: Furnished) -> BaseRoute:
    """No page breaks by itself, and what is shown then has to be seen as well."""

    async def breaks(visit: Visit) -> Response:
        raise AssertionError("broken on purpose")

    secure = urlsplit(house.base_url).scheme == "https"
    shared = House(house.service, house.base_url, "", Cookies(secure), lambda: False)
    return Route(BROKEN, Gate(PageRoute(BROKEN, get=breaks), shared).__call__)


async def _opened(folder: Path, base_url: str, loop: asyncio.AbstractEventLoop) -> Furnished:
    clock = SystemClock()
    store = SqliteStore(folder / "cuepost.sqlite3", clock)
    await store.open()
    ambient = Ambient(
        clock,
        SystemIds(),
        system_entropy,
        AesGcmBox([bytes(32)], system_entropy),
        Argon2Passwords(CHEAP),
    )
    local = LocalMedia(folder / "media", base_url, [bytes(32)])
    rules = Rules(base_url, EgressPolicy(inbox_prefix=inbox_prefix(base_url)))
    service = assemble(store, ambient, rules, Media(local, local, local))

    async def account(name: str, *, webhooks: bool) -> Account:
        return await service.perform.change(
            lambda t: service.access.create_account(t, OPERATOR, name, webhooks)
        )

    house = Furnished(
        base_url,
        service,
        store,
        loop,
        await account("Harbour Films", webhooks=True),
        await account("Newcomers", webhooks=True),
        await account("Closed House", webhooks=False),
    )
    house.paths = await Furnisher(service, house.account.id).furnish()
    return house
