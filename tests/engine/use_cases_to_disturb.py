"""An account with a bit of everything, and the main use cases that change something about it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import UUID

from cuepost.application.manage_projects import ProjectChange
from cuepost.application.manage_webhooks import EndpointChange
from cuepost.application.milestone_book import Milestone
from cuepost.domain.access import ACCOUNT_SCOPES
from cuepost.domain.delivery import DeliveryStatus
from cuepost.domain.project import Origin, Project, ProjectKind
from cuepost.engine.housekeeping import Tidying
from cuepost.engine.retention import Forgetting
from cuepost.ports.retention import Passing
from tests.application.world import OPERATOR
from tests.support.stage import DAY, HOUR, Stage

URLS = [f"https://hooks{number}.example.com/cue" for number in range(2)]


@dataclass(slots=True)
class Furnished:
    """`pending` waits for the first endpoint, `failed` has ended there; the second one rotates."""

    stage: Stage
    webhook_id: UUID
    rotating_id: UUID
    project: Project
    other: Project
    failed_id: UUID
    milestones: tuple[Milestone, ...]

    @property
    def tidying(self) -> Tidying:
        return Tidying(self.stage.store, self.stage.world.service, self.stage.clock)

    async def change_webhook(self, **wanted: object) -> None:
        change = EndpointChange(**wanted)  # type: ignore[arg-type]  # named by the case
        world = self.stage.world
        await world.do(world.service.webhooks.change, world.owner, self.webhook_id, change)

    async def with_webhook(self, action: str, webhook_id: UUID | None = None) -> None:
        world = self.stage.world
        use_case = getattr(world.service.webhooks, action)
        await world.do(use_case, world.owner, webhook_id or self.webhook_id)

    async def with_project(self, action: str, *more: object) -> None:
        world = self.stage.world
        use_case = getattr(world.service.projects, action)
        await world.do(use_case, world.owner, self.project.id, *more)

    async def retry_all(self) -> None:
        world = self.stage.world
        await world.do(
            world.service.redeliver.start_bulk,
            world.owner,
            self.webhook_id,
            since=self.stage.clock.now() - DAY,
            until=None,
            statuses=[],
            dry_run=False,
        )


async def furnished(stage: Stage) -> Furnished:
    world = stage.world
    made = [await world.endpoint(url=url) for url in URLS]
    first, second = (each.view.endpoint.id for each in made)
    await world.do(world.service.webhooks.rotate_secret, world.owner, second)
    projects = [await world.project() for _ in range(4)]
    await world.report(*[world.milestone(each) for each in projects[:2]])
    stage.clock.advance(hours=1)
    [ended, *_] = await world.deliveries(webhook_id=first)
    await world.end(ended, DeliveryStatus.FAILED)
    moved = [world.milestone(each) for each in projects[2:]]
    again = replace(world.milestone(projects[0], "exporting"), project_id=projects[0].id)
    return Furnished(stage, first, second, projects[1], projects[2], ended.id, (*moved, again))


Case = Callable[[Furnished], Awaitable[object]]


async def _create_project(it: Furnished) -> None:
    world = it.stage.world
    await world.do(
        world.service.projects.create,
        world.owner,
        name="Cut",
        kind=ProjectKind.VIDEO,
        origin=Origin.API,
        access_expires_at=None,
    )


async def _end_access(it: Furnished) -> None:
    ended = it.stage.clock.now() - timedelta(seconds=1)
    await it.with_project("change", ProjectChange(sets_access=True, access_expires_at=ended))


async def _retry(it: Furnished) -> None:
    world = it.stage.world
    await world.do(world.service.redeliver.one, world.owner, it.webhook_id, it.failed_id)


async def _close_access(it: Furnished) -> None:
    world = it.stage.world
    await world.do(world.service.access.set_webhooks, OPERATOR, world.account.id, False)


async def _create_key(it: Furnished) -> None:
    world = it.stage.world
    await world.do(
        world.service.access.create_key,
        OPERATOR,
        world.account.id,
        name="another",
        scopes=ACCOUNT_SCOPES,
    )


CASES: dict[str, Case] = {
    "report milestones": lambda it: it.stage.world.report(*it.milestones),
    "create an endpoint": lambda it: it.stage.world.endpoint(url="https://hooks9.example.com/"),
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
    "forget history": lambda it: Forgetting(it.stage.store, it.stage.clock).step(
        Passing.HISTORY, HOUR / 2
    ),
}
