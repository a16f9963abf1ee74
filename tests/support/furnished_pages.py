"""A service with an account that has seen something: every state that a page can show."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import uvicorn

from cuepost.adapters.secret_box import AesGcmBox
from cuepost.adapters.storage.sqlite import SqliteStore
from cuepost.adapters.system_clock import SystemClock, SystemIds, system_entropy
from cuepost.application.manage_webhooks import EndpointChange
from cuepost.application.service import Ambient, Rules, Service, assemble, inbox_prefix
from cuepost.domain.access import ACCOUNT_SCOPES, Account, Caller, Door
from cuepost.domain.attempt import Outcome, Timings
from cuepost.domain.delivery import CancelReason, Delivery, DeliveryStatus
from cuepost.domain.egress_policy import EgressPolicy
from cuepost.domain.endpoint import Endpoint
from cuepost.domain.event import freeze
from cuepost.domain.project import ProjectStatus
from cuepost.doors.rest.app import create_app
from cuepost.doors.rest.open_pages import HealthChecks
from cuepost.doors.web.app import create_pages
from cuepost.ports.store import Transaction
from cuepost.testing import VirtualClock
from tests.support.records import Records
from tests.support.service_process import free_port

OPERATOR = Caller(Door.CLI, "operator:root", None, frozenset())
START_SECONDS = 20.0
HOSTILE = b"""<script>document.title = "owned"</script><img src=x onerror="document.title='owned'">
<style>body { display: none }</style>\x1b[2J\x00<svg onload=alert(1)>"""
HOSTILE_HEADERS = (
    ("content-type", "text/html"),
    ("x-evil", "<script>document.title = 'owned'</script>\"><b>"),
    ("x-long", "a" * 400),
)
LONG = "https://webhooks.a-very-long-host-name-of-a-receiver.example.com/" + "long/" * 30 + "end"
_S = DeliveryStatus


@dataclass
class Furnished:
    base_url: str
    service: Service
    store: SqliteStore
    loop: asyncio.AbstractEventLoop
    account: Account
    paths: dict[str, str] = field(default_factory=dict)

    def sign_in_link(self) -> str:
        async def make() -> str:
            link = await self.service.perform.change(
                lambda t: self.service.sign_in.make_link(t, OPERATOR, self.account.id)
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
    opening = _opened(folder / "cuepost.sqlite3", base_url, loop)
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
        further_routes=pages,
    )
    port = int(house.base_url.rpartition(":")[2])
    server = uvicorn.Server(
        uvicorn.Config(app, port=port, ws="none", lifespan="off", log_config=None)
    )
    # Signals belong to the main thread.
    server.capture_signals = nullcontext  # type: ignore[method-assign,assignment]  # not here
    return server


async def _opened(path: Path, base_url: str, loop: asyncio.AbstractEventLoop) -> Furnished:
    clock = SystemClock()
    store = SqliteStore(path, clock)
    await store.open()
    ambient = Ambient(clock, SystemIds(), system_entropy, AesGcmBox([bytes(32)], system_entropy))
    rules = Rules(base_url, EgressPolicy(inbox_prefix=inbox_prefix(base_url)))
    service = assemble(store, ambient, rules)
    account = await service.perform.change(
        lambda t: service.access.create_account(t, OPERATOR, "Harbour Films", True)
    )
    house = Furnished(base_url, service, store, loop, account)
    await Furnisher(house).furnish()
    return house


@dataclass
class Furnisher:
    house: Furnished

    def __post_init__(self) -> None:
        now = SystemClock().now()
        self.owner = Caller(
            Door.PAGES, "user:somebody", self.house.account.id, ACCOUNT_SCOPES, True, "192.0.2.7"
        )
        self.records = Records(clock=VirtualClock(now - timedelta(hours=23)))

    async def furnish(self) -> None:
        service, change = self.house.service, self.house.service.perform.change
        healthy = await self._endpoint("https://hooks.example.com/cuepost", "Production")
        failing = await self._endpoint("https://staging.example.com/hooks/video", "Staging")
        disabled = await self._endpoint(
            LONG, "Was moved away in spring; kept for its history. " * 3
        )
        inbox = await change(lambda t: service.inbox.mine(t, self.owner))
        await self._endpoint(service.inbox.address(inbox.token), "")
        await change(lambda t: service.webhooks.rotate_secret(t, self.owner, failing.id))
        await change(lambda t: self._fill(t, healthy, failing, disabled))
        off = EndpointChange(enabled=False)
        await change(lambda t: service.webhooks.change(t, self.owner, disabled.id, off))
        await change(
            lambda t: service.keys.create(
                t,
                self.owner,
                name="Nightly export",
                scopes=list(ACCOUNT_SCOPES)[:2],
                expires_at=None,
            )
        )
        for n in range(2):
            message = self.records.inbox_message(self.house.account.id, body=b'{"id":"%d"}' % n)
            await change(lambda t, message=message: t.inboxes.keep(message, 100))  # type: ignore[misc]  # bound at once
        self._name_pages(healthy, failing, disabled, inbox.token)

    async def _endpoint(self, url: str, description: str) -> Endpoint:
        made = await self.house.service.perform.change(
            lambda t: self.house.service.webhooks.create(t, self.owner, url, [], description)
        )
        return made.view.endpoint

    async def _fill(
        self, t: Transaction, healthy: Endpoint, failing: Endpoint, disabled: Endpoint
    ) -> None:
        project = self.records.project(
            self.house.account.id, name="Harbour at dawn, trailer", status=ProjectStatus.COMPLETED
        )
        await t.projects.add(project)
        self.house.paths["project"] = f"/settings/projects/{project.id}"
        for place in range(90):
            self.records.clock.advance(minutes=14)
            await self._delivery(t, healthy, project.id, _S.DELIVERED, "delivered")
            if place % 9 == 0:
                await self._delivery(t, failing, project.id, _S.FAILED, "failed")
        await self._delivery(t, disabled, project.id, _S.CANCELLED, "cancelled")
        await self._delivery(t, failing, project.id, _S.RETRYING, "retrying")
        now = SystemClock().now()
        await t.endpoints.save(replace(healthy, last_delivered_at=now - timedelta(minutes=14)))
        await t.endpoints.save(replace(failing, failing_since=now - timedelta(hours=21)))

    async def _delivery(
        self, t: Transaction, endpoint: Endpoint, project: UUID, status: DeliveryStatus, name: str
    ) -> None:
        account_id, records = self.house.account.id, self.records
        event = records.event(account_id, project_id=project)
        data = {"projectId": str(project), "status": "completed", "stage": "export"}
        body = freeze(event.id, event.type, event.created_at, data)
        await t.events.add([replace(event, body=body)])
        waits = SystemClock().now() + timedelta(minutes=4, seconds=12)
        cancelled = status is _S.CANCELLED
        delivery = records.delivery(
            account_id,
            webhook_id=endpoint.id,
            event_id=event.id,
            project_id=project,
            status=status,
            attempt_count=0 if cancelled else 3 if status is _S.FAILED else 1,
            reason=CancelReason.ENDPOINT_DISABLED if cancelled else None,
            **({"next_attempt_at": waits} if status is _S.RETRYING else {}),
        )
        await t.deliveries.add([delivery])
        await self._attempts(t, delivery)
        where = f"/settings/webhooks/{endpoint.id}/deliveries/{delivery.id}"
        self.house.paths[f"delivery-{name}"] = where

    async def _attempts(self, t: Transaction, delivery: Delivery) -> None:
        ways: dict[DeliveryStatus, list[tuple[Outcome, int | None]]] = {
            _S.DELIVERED: [(Outcome.DELIVERED, 200)],
            _S.FAILED: [
                (Outcome.HTTP_ERROR, 503),
                (Outcome.TIMEOUT, None),
                (Outcome.HTTP_ERROR, 404),
            ],
            _S.RETRYING: [(Outcome.HTTP_ERROR, 404)],
        }
        for number, (outcome, status) in enumerate(ways.get(delivery.status, ()), start=1):
            good = outcome is Outcome.DELIVERED
            spread = delivery.id.int % 60
            attempt = self.records.attempt(
                delivery,
                number=number,
                outcome=outcome,
                duration_ms=38.0 + spread if status else 15_000.0,
                timings=Timings(3.0 + spread / 30, 11.0, 14.5, 20.0)
                if status
                else Timings(4.0, 9.0),
                response_status=status,
                response_headers=() if good else HOSTILE_HEADERS,
                response_body=b'{"ok":true}' if good else HOSTILE,
                response_truncated=False,
            )
            await t.attempts.add([attempt])

    def _name_pages(
        self, healthy: Endpoint, failing: Endpoint, disabled: Endpoint, token: str
    ) -> None:
        webhooks = "/settings/webhooks"
        self.house.paths |= {
            "webhooks": webhooks,
            "webhook-new": f"{webhooks}/new",
            "webhook": f"{webhooks}/{healthy.id}",
            "webhook-failing": f"{webhooks}/{failing.id}",
            "webhook-disabled": f"{webhooks}/{disabled.id}",
            "webhook-edit": f"{webhooks}/{healthy.id}/edit",
            "webhook-rotate": f"{webhooks}/{healthy.id}/rotate",
            "webhook-rotate-blocked": f"{webhooks}/{failing.id}/rotate",
            "webhook-delete": f"{webhooks}/{disabled.id}/delete",
            "bulk-retry": f"{webhooks}/{failing.id}/retries/new",
            "deliveries": "/settings/deliveries",
            "deliveries-of-webhook": f"{webhooks}/{failing.id}/deliveries",
            "deliveries-filtered": "/settings/deliveries?status=failed&outcome=http_error",
            "deliveries-none": "/settings/deliveries?status=delivering&type=project.ready",
            "deliveries-unknown": "/settings/deliveries?q=nothing",
            "projects": "/settings/projects",
            "event-types": "/settings/event-types",
            "keys": "/settings/keys",
            "audit": "/settings/audit",
            "account": "/settings/account",
            "inbox": f"/inbox/{token}",
            "doctor": "/settings/doctor",
            "not-found": f"{webhooks}/{self.house.account.id}",
        }
