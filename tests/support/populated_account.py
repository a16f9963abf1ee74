"""What a populated account holds: every state that a page can show, and where each is shown."""

from dataclasses import dataclass, field, replace
from datetime import timedelta
from uuid import UUID

from cuepost.adapters.storage.records.counts import Tally
from cuepost.adapters.storage.session import numbers_of
from cuepost.adapters.storage.transaction import RecordsTransaction
from cuepost.adapters.system_clock import SystemClock
from cuepost.application.manage_webhooks import EndpointChange, EndpointWithSecret
from cuepost.application.service import Service
from cuepost.domain.access import ACCOUNT_SCOPES, Caller, Interface, Scope
from cuepost.domain.attempt import Attempt, Outcome, Timings
from cuepost.domain.bulk_retry import BulkRetryState
from cuepost.domain.delivery import CancelReason, Delivery, DeliveryStatus
from cuepost.domain.endpoint import Endpoint
from cuepost.domain.event import SilenceReason, event_body
from cuepost.domain.project import Origin, ProjectStatus, Stage
from cuepost.ports.store import Transaction
from cuepost.testing import VirtualClock
from tests.support.records import Records
from tests.support.store_rows import end

HOSTILE = b"""<script>document.title = "owned"</script><img src=x onerror="document.title='owned'">
<style>body { display: none }</style>\x1b[2J\x00<svg onload=alert(1)>"""
HOSTILE_HEADERS = (
    ("content-type", "text/html"),
    ("x-evil", "<script>document.title = 'owned'</script>\"><b>"),
    ("x-long", "a" * 400),
)
LONG = "https://webhooks.a-very-long-host-name-of-a-receiver.example.com/" + "long/" * 30 + "end"
LONG_NAME = "Harbour at dawn, noon, dusk and night, the director's longest cut so far " * 2
WEBHOOKS = "/settings/webhooks"
_S = DeliveryStatus
_WAYS: dict[DeliveryStatus, list[tuple[Outcome, int | None]]] = {
    _S.DELIVERED: [(Outcome.DELIVERED, 200)],
    _S.FAILED: [
        (Outcome.HTTP_ERROR, 503),
        (Outcome.TIMEOUT, None),
        (Outcome.HTTP_ERROR, 404),
    ],
    _S.RETRYING: [(Outcome.HTTP_ERROR, 404)],
}


@dataclass
class Populator:
    service: Service
    account_id: UUID
    paths: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        now = SystemClock().now()
        self.owner = Caller(
            Interface.PAGES, "user:someone", self.account_id, ACCOUNT_SCOPES, True, "192.0.2.7"
        )
        self.records = Records(clock=VirtualClock(now - timedelta(hours=23)))

    async def populate(self) -> dict[str, str]:
        """The paths of all pages that can be opened, by name."""
        service, change = self.service, self.service.perform.change
        healthy = await self._endpoint("https://hooks.example.com/cuepost", "Production")
        failing = await self._endpoint("https://staging.example.com/hooks/video", "Staging")
        disabled = await self._endpoint(
            LONG, "Was moved away in spring; kept for its history. " * 3
        )
        inbox = await change(lambda t: service.inbox.mine(t, self.owner))
        fresh = await self._endpoint(service.inbox.address(inbox.token), "")
        rotated: EndpointWithSecret = await change(
            lambda t: service.webhooks.rotate_secret(t, self.owner, failing.id)
        )
        offer = await change(lambda t: service.reveals.offer(t, self.owner, rotated))
        self.paths["reveal"] = f"/reveal/{offer.url.rpartition('/')[2]}"
        await change(lambda t: self._fill(t, healthy, failing, disabled))
        await change(self._projects)
        await change(lambda t: self._bulk_retries(t, failing))
        await change(self._keys)
        off = EndpointChange(enabled=False)
        await change(lambda t: service.webhooks.change(t, self.owner, disabled.id, off))
        for n in range(2):
            message = self.records.inbox_message(self.account_id, body=b'{"id":"%d"}' % n)
            await change(lambda t, message=message: t.inboxes.keep(message, 100))  # type: ignore[misc]  # bound at once
        self._name_pages(healthy, failing, disabled, inbox.token)
        self.paths["webhook-never-used"] = f"{WEBHOOKS}/{fresh.id}"
        return self.paths

    async def _endpoint(self, url: str, description: str) -> Endpoint:
        made = await self.service.perform.change(
            lambda t: self.service.webhooks.create(t, self.owner, url, [], description)
        )
        return made.view.endpoint

    async def _fill(
        self, t: Transaction, healthy: Endpoint, failing: Endpoint, disabled: Endpoint
    ) -> None:
        project = self.records.project(
            self.account_id,
            name="Harbour at dawn, trailer",
            status=ProjectStatus.COMPLETED,
            exported_at=self.records.clock.now(),
        )
        await t.projects.add(project)
        files = [
            self.records.artifact(name="harbour-trailer.mp4", size_bytes=734_003_200),
            self.records.artifact(
                kind="captions",
                name="harbour-trailer.en.vtt",
                content_type="text/vtt",
                size_bytes=18_204,
            ),
        ]
        await t.projects.replace_artifacts({(self.account_id, project.id): files})
        self.paths["project"] = f"/settings/projects/{project.id}"
        self.paths["project-edit"] = f"/settings/projects/{project.id}/edit"
        for place in range(90):
            self.records.clock.advance(minutes=14)
            await self._delivery(t, healthy, project.id, _S.DELIVERED, "delivered")
            if place % 9 == 0:
                await self._delivery(t, failing, project.id, _S.FAILED, "failed")
        await self._delivery(t, disabled, project.id, _S.CANCELLED, "cancelled")
        await self._delivery(t, failing, project.id, _S.RETRYING, "retrying")
        await self._delivery(t, healthy, project.id, _S.PENDING, "pending")
        await self._delivered_then_failed(t, healthy, project.id)
        now = SystemClock().now()
        await t.endpoints.save(replace(healthy, last_delivered_at=now - timedelta(minutes=14)))
        since = now - timedelta(hours=21)
        await t.endpoints.save(replace(failing, failing_since=since, troubled_since=since))

    async def _delivered_then_failed(
        self, t: Transaction, endpoint: Endpoint, project: UUID
    ) -> None:
        """Sent again by hand; one of the attempts was interrupted."""
        delivery = await self._delivery(t, endpoint, project, _S.DELIVERED, "delivered-before")
        records = self.records
        records.clock.advance(minutes=1)
        await t.deliveries.send_again(delivery.account_id, [delivery.id], records.clock.now())
        lost = records.attempt(
            delivery,
            budget=0,
            duration_ms=0.0,
            signed_with=(),
            request_headers=(),
            response_status=None,
            response_headers=(),
            response_body=b"",
            outcome=Outcome.INTERRUPTED,
            url=LONG,
        )
        records.clock.advance(seconds=30)
        headers = _signed_headers(delivery)
        refused = records.attempt(delivery, budget=2, request_headers=headers, url=LONG)
        await t.attempts.add([lost, refused])
        await end(t, delivery.id, _S.FAILED, records.clock.now(), attempt_count=2)

    async def _projects(self, t: Transaction) -> None:
        """One to be moved by hand, with an event for no one; one that is gone."""
        waiting = self.records.project(
            self.account_id,
            name=LONG_NAME,
            status=ProjectStatus.READY,
            stage=Stage.PROCESSING,
            origin=Origin.APP,
        )
        gone = self.records.project(self.account_id).deleted(self.records.clock.now())
        for project in (waiting, gone):
            await t.projects.add(project)
        event = self.records.event(
            self.account_id, type="project.ready", project_id=waiting.id
        ).silenced(SilenceReason.NOT_SUBSCRIBED)
        data = {"projectId": str(waiting.id), "status": "ready", "stage": "processing"}
        body = event_body(event.id, event.type, event.created_at, data)
        await t.events.add([replace(event, body=body)])
        self.paths["project-by-hand"] = f"/settings/projects/{waiting.id}"
        self.paths["project-gone"] = f"/settings/projects/{gone.id}"
        self.paths["event-without-deliveries"] = f"/settings/events/{event.id}"

    async def _bulk_retries(self, t: Transaction, failing: Endpoint) -> None:
        running = self.records.bulk_retry(self.account_id, failing.id, count=250, retried=90)
        finished = self.records.bulk_retry(
            self.account_id,
            failing.id,
            state=BulkRetryState.FINISHED,
            count=10,
            retried=8,
            skipped=2,
            finished_at=self.records.clock.now(),
        )
        for name, job in (("running", running), ("finished", finished)):
            await t.bulk_retries.add(job)
            await t.bulk_retries.save(job)
            self.paths[f"bulk-retry-{name}"] = f"{WEBHOOKS}/{failing.id}/retries/{job.id}"

    async def _keys(self, t: Transaction) -> None:
        keys, everything = self.service.keys, list(ACCOUNT_SCOPES)
        reads = [Scope.PROJECTS_READ, Scope.WEBHOOKS_READ]
        soon = SystemClock().now() + timedelta(days=30)
        old = await keys.create(
            t, self.owner, name="Laptop of last year", scopes=everything, expires_at=None
        )
        await keys.revoke(t, self.owner, old.key.id)
        await keys.create(t, self.owner, name="Nightly export", scopes=reads, expires_at=soon)

    async def _delivery(
        self, t: Transaction, endpoint: Endpoint, project: UUID, status: DeliveryStatus, name: str
    ) -> Delivery:
        account_id, records = self.account_id, self.records
        event = records.event(account_id, project_id=project)
        data = {"projectId": str(project), "status": "completed", "stage": "export"}
        body = event_body(event.id, event.type, event.created_at, data)
        await t.events.add([replace(event, body=body)])
        waits = SystemClock().now() + timedelta(minutes=4, seconds=12)
        cancelled = status is _S.CANCELLED
        delivery = records.delivery(
            account_id,
            webhook_id=endpoint.id,
            event_id=event.id,
            project_id=project,
            status=status,
            attempt_count=len(_WAYS.get(status, ())),
            reason=CancelReason.ENDPOINT_DISABLED if cancelled else None,
            **({"next_attempt_at": waits} if status is _S.RETRYING else {}),
        )
        await t.deliveries.add([delivery])
        await self._attempts(t, delivery)
        self.paths[f"delivery-{name}"] = f"{WEBHOOKS}/{endpoint.id}/deliveries/{delivery.id}"
        self.paths["event"] = f"/settings/events/{event.id}"
        return delivery

    async def _attempts(self, t: Transaction, delivery: Delivery) -> None:
        for number, (outcome, status) in enumerate(_WAYS.get(delivery.status, ()), start=1):
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
                request_headers=_signed_headers(delivery),
                response_status=status,
                response_headers=() if good else HOSTILE_HEADERS,
                response_body=b'{"ok":true}' if good else HOSTILE,
                response_truncated=False,
            )
            await t.attempts.add([attempt])
            await _count(t, delivery.webhook_id, attempt)

    def _name_pages(
        self, healthy: Endpoint, failing: Endpoint, disabled: Endpoint, token: str
    ) -> None:
        delivery = self.paths["delivery-delivered"].rpartition("/")[2]
        self.paths |= {
            "overview": "/settings",
            "overview-hour": "/settings?range=1h",
            "overview-month": "/settings?range=30d",
            "webhooks": WEBHOOKS,
            "webhooks-searched": f"{WEBHOOKS}?q=example&order=health",
            "webhooks-none": f"{WEBHOOKS}?q=nothing",
            "webhook-new": f"{WEBHOOKS}/new",
            "webhook": f"{WEBHOOKS}/{healthy.id}",
            "webhook-failing": f"{WEBHOOKS}/{failing.id}",
            "webhook-disabled": f"{WEBHOOKS}/{disabled.id}",
            "webhook-secret-tab": f"{WEBHOOKS}/{failing.id}/secret",
            "webhook-edit": f"{WEBHOOKS}/{healthy.id}/edit",
            "webhook-rotate": f"{WEBHOOKS}/{healthy.id}/rotate",
            "webhook-rotate-blocked": f"{WEBHOOKS}/{failing.id}/rotate",
            "webhook-delete": f"{WEBHOOKS}/{disabled.id}/delete",
            "bulk-retry": f"{WEBHOOKS}/{failing.id}/retries/new",
            "deliveries": "/settings/deliveries",
            "deliveries-of-webhook": f"{WEBHOOKS}/{failing.id}/deliveries",
            "deliveries-filtered": "/settings/deliveries?status=failed&outcome=http_error",
            "deliveries-delivered-before": "/settings/deliveries?status=failed&delivered=included",
            "deliveries-none": "/settings/deliveries?status=delivering&type=project.ready",
            "deliveries-unknown": "/settings/deliveries?q=nothing",
            "deliveries-named": "/settings/deliveries?q=example.com",
            "deliveries-chips": f"/settings/deliveries?range=24h&endpoint={failing.id}",
            "events": "/settings/events",
            "events-none": "/settings/events?type=project.cancelled",
            "projects": "/settings/projects",
            "event-types": "/settings/event-types",
            "audit-filtered": "/settings/audit?range=24h&action=webhook&actor=user%3Asomeone",
            "audit-none": "/settings/audit?action=portal",
            "keys": "/settings/keys",
            "members": "/settings/members",
            "audit": "/settings/audit",
            "account": "/settings/account",
            "inbox": f"/inbox/{token}",
            "doctor": "/settings/doctor",
            "doctor-of-delivery": f"/settings/doctor?delivery={delivery}&webhook={healthy.id}",
            "not-found": f"{WEBHOOKS}/{self.account_id}",
            "broken": "/settings/broken",
        }


def _signed_headers(delivery: Delivery) -> tuple[tuple[str, str], ...]:
    """As the engine records them; the signature is none that any secret has made."""
    return (
        ("content-type", "application/json; charset=utf-8"),
        ("user-agent", "cuepost/0.2.0"),
        ("webhook-id", str(delivery.event_id)),
        ("webhook-timestamp", str(int(delivery.created_at.timestamp()))),
        ("webhook-signature", f"v1,{'A' * 43}="),
    )


async def _count(t: Transaction, webhook_id: UUID, attempt: Attempt) -> None:
    """Attempts are counted where outcomes are recorded, which needs a worker."""
    assert isinstance(t, RecordsTransaction)
    numbers, tally = await numbers_of(t.session, attempt.account_id), Tally()
    tally.attempted(numbers.account, numbers.endpoint(webhook_id), attempt)
    await tally.write(t.session)
