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
from cuepost.application.service import Rules, Service, SystemPorts, assemble, inbox_prefix
from cuepost.domain.access import OPERATOR_SCOPES, Account, Caller, Interface
from cuepost.domain.egress_policy import EgressPolicy
from cuepost.engine.worker_lease import ENDLESS
from cuepost.interfaces.rest.app import create_app
from cuepost.interfaces.rest.open_pages import HealthChecks
from cuepost.interfaces.web.app import create_pages
from cuepost.interfaces.web.page_context import PageContext, PageRoute, SiteContext
from cuepost.interfaces.web.page_handler import PageHandler
from cuepost.interfaces.web.protection import Cookies
from cuepost.ports.media import Media
from tests.support.populated_account import Populator
from tests.support.service_process import free_port

OPERATOR = Caller(Interface.CLI, "operator:root", None, frozenset())
START_SECONDS = 20.0
CHEAP = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
BROKEN = "/settings/broken"


@dataclass
class Populated:
    """`paths` are those of the populated account, by name; the others share what needs no id."""

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

    def operator_key(self) -> str:
        async def make() -> str:
            made = await self.service.perform.change(
                lambda t: self.service.access.create_key(
                    t, OPERATOR, None, name="On call", scopes=OPERATOR_SCOPES
                )
            )
            return made.token

        return asyncio.run_coroutine_threadsafe(make(), self.loop).result(START_SECONDS)

    def start_worker(self) -> None:
        """A lease without a worker: nothing is sent from these pages."""
        access = self.service.access
        now = access.clock.now()

        async def register() -> None:
            async with self.store.transaction() as transaction:
                await transaction.queue.register_worker(access.ids(now), now + ENDLESS)

        asyncio.run_coroutine_threadsafe(register(), self.loop).result(START_SECONDS)


@contextmanager
def populated(folder: Path) -> Iterator[Populated]:
    """Served from a thread of this process, over real HTTP."""
    base_url = f"http://127.0.0.1:{free_port()}"
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    opening = _opened(folder, base_url, loop)
    site = asyncio.run_coroutine_threadsafe(opening, loop).result(START_SECONDS)
    server = _server(site)
    serving = asyncio.run_coroutine_threadsafe(server.serve(), loop)
    try:
        yield site
    finally:
        server.should_exit = server.force_exit = True
        serving.result(START_SECONDS)
        asyncio.run_coroutine_threadsafe(site.store.close(), loop).result(START_SECONDS)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(START_SECONDS)
        loop.close()


def _server(site: Populated) -> uvicorn.Server:
    pages = create_pages(
        site.service,
        base_url=site.base_url,
        is_stopping=lambda: server.should_exit,
    )
    app = create_app(
        site.service,
        base_url=site.base_url,
        health=HealthChecks(site.store.check),
        further_routes=[_broken_page(site), *pages],
    )
    port = int(site.base_url.rpartition(":")[2])
    server = uvicorn.Server(
        uvicorn.Config(app, port=port, ws="none", lifespan="off", log_config=None)
    )
    # Signals belong to the main thread.
    server.capture_signals = nullcontext  # type: ignore[method-assign,assignment]  # not here
    return server


def _broken_page(site: Populated) -> BaseRoute:
    """No page breaks by itself, and what is shown then has to be seen as well."""

    async def breaks(context: PageContext) -> Response:
        raise AssertionError("broken on purpose")

    secure = urlsplit(site.base_url).scheme == "https"
    shared = SiteContext(site.service, site.base_url, "", Cookies(secure), lambda: False)
    return Route(BROKEN, PageHandler(PageRoute(BROKEN, get=breaks), shared).__call__)


async def _opened(folder: Path, base_url: str, loop: asyncio.AbstractEventLoop) -> Populated:
    clock = SystemClock()
    store = SqliteStore(folder / "cuepost.sqlite3", clock)
    await store.open()
    system = SystemPorts(
        clock,
        SystemIds(),
        system_entropy,
        AesGcmBox([bytes(32)], system_entropy),
        Argon2Passwords(CHEAP),
    )
    local = LocalMedia(folder / "media", base_url, [bytes(32)])
    rules = Rules(base_url, EgressPolicy(inbox_prefix=inbox_prefix(base_url)))
    service = assemble(store, system, rules, Media(local, local, local))

    async def account(name: str, *, webhooks: bool) -> Account:
        return await service.perform.change(
            lambda t: service.access.create_account(t, OPERATOR, name, webhooks)
        )

    site = Populated(
        base_url,
        service,
        store,
        loop,
        await account("Harbour Films", webhooks=True),
        await account("Newcomers", webhooks=True),
        await account("Closed Studio", webhooks=False),
    )
    site.paths = await Populator(service, site.account.id).populate()
    return site
