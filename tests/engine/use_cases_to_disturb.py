"""An account with a bit of everything, and the main use cases that change something about it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import UUID

from cuepost.application.manage_projects import ProjectChange
from cuepost.application.manage_webhooks import EndpointChange
from cuepost.application.milestone_batch import Milestone
from cuepost.domain.access import ACCOUNT_SCOPES
from cuepost.domain.delivery import DeliveryStatus
from cuepost.domain.project import Origin, Project, ProjectKind
from cuepost.engine.maintenance import JobSteps
from cuepost.engine.retention import Expiry
from cuepost.ports.retention import Expiring
from tests.application.harness import OPERATOR
from tests.support.engine_harness import DAY, HOUR, EngineHarness

URLS = [f"https://hooks{number}.example.com/cue" for number in range(2)]


@dataclass(slots=True)
class Populated:
    """`pending` waits for the first endpoint, `failed` has ended there; the second one rotates."""

    engine: EngineHarness
    webhook_id: UUID
    rotating_id: UUID
    project: Project
    other: Project
    failed_id: UUID
    milestones: tuple[Milestone, ...]

    @property
    def steps(self) -> JobSteps:
        return JobSteps(self.engine.store, self.engine.harness.service, self.engine.clock)

    async def change_webhook(self, **wanted: object) -> None:
        change = EndpointChange(**wanted)  # type: ignore[arg-type]  # named by the case
        harness = self.engine.harness
        await harness.do(harness.service.webhooks.change, harness.owner, self.webhook_id, change)

    async def with_webhook(self, action: str, webhook_id: UUID | None = None) -> None:
        harness = self.engine.harness
        use_case = getattr(harness.service.webhooks, action)
        await harness.do(use_case, harness.owner, webhook_id or self.webhook_id)

    async def with_project(self, action: str, *more: object) -> None:
        harness = self.engine.harness
        use_case = getattr(harness.service.projects, action)
        await harness.do(use_case, harness.owner, self.project.id, *more)

    async def retry_all(self) -> None:
        harness = self.engine.harness
        await harness.do(
            harness.service.redeliver.start_bulk,
            harness.owner,
            self.webhook_id,
            since=self.engine.clock.now() - DAY,
            until=None,
            statuses=[],
            dry_run=False,
        )


async def populated(engine: EngineHarness) -> Populated:
    harness = engine.harness
    made = [await harness.endpoint(url=url) for url in URLS]
    first, second = (each.view.endpoint.id for each in made)
    await harness.do(harness.service.webhooks.rotate_secret, harness.owner, second)
    projects = [await harness.project() for _ in range(4)]
    await harness.report(*[harness.milestone(each) for each in projects[:2]])
    engine.clock.advance(hours=1)
    [ended, *_] = await harness.deliveries(webhook_id=first)
    await harness.end(ended, DeliveryStatus.FAILED)
    moved = [harness.milestone(each) for each in projects[2:]]
    again = replace(harness.milestone(projects[0], "exporting"), project_id=projects[0].id)
    return Populated(engine, first, second, projects[1], projects[2], ended.id, (*moved, again))


Case = Callable[[Populated], Awaitable[object]]


async def _create_project(it: Populated) -> None:
    harness = it.engine.harness
    await harness.do(
        harness.service.projects.create,
        harness.owner,
        name="Cut",
        kind=ProjectKind.VIDEO,
        origin=Origin.API,
        access_expires_at=None,
    )


async def _end_access(it: Populated) -> None:
    ended = it.engine.clock.now() - timedelta(seconds=1)
    await it.with_project("change", ProjectChange(sets_access=True, access_expires_at=ended))


async def _retry(it: Populated) -> None:
    harness = it.engine.harness
    await harness.do(harness.service.redeliver.one, harness.owner, it.webhook_id, it.failed_id)


async def _close_access(it: Populated) -> None:
    harness = it.engine.harness
    await harness.do(harness.service.access.set_webhooks, OPERATOR, harness.account.id, False)


async def _create_key(it: Populated) -> None:
    harness = it.engine.harness
    await harness.do(
        harness.service.access.create_key,
        OPERATOR,
        harness.account.id,
        name="another",
        scopes=ACCOUNT_SCOPES,
    )


CASES: dict[str, Case] = {
    "report milestones": lambda it: it.engine.harness.report(*it.milestones),
    "create an endpoint": lambda it: it.engine.harness.endpoint(url="https://hooks9.example.com/"),
    "move an endpoint": lambda it: it.change_webhook(url="https://hooks9.example.com/"),
    "disable an endpoint": lambda it: it.change_webhook(enabled=False),
    "delete an endpoint": lambda it: it.with_webhook("delete"),
    "rotate a secret": lambda it: it.with_webhook("rotate_secret"),
    "end an overlap": lambda it: it.with_webhook("end_overlap", it.rotating_id),
    "send a test": lambda it: it.with_webhook("send_test"),
    "retry a delivery": _retry,
    "retry many": lambda it: it.retry_all(),
    "create a project": _create_project,
    "export again": lambda it: it.with_project("export"),
    "end access to a project": _end_access,
    "delete a project": lambda it: it.with_project("delete"),
    "close access": _close_access,
    "create a key": _create_key,
    "forget history": lambda it: Expiry(it.engine.store, it.engine.clock).step(
        Expiring.HISTORY, HOUR / 2
    ),
}
