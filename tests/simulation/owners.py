"""What the owners of endpoints and projects do, and the pipeline that reports milestones."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from uuid import UUID

from cuepost.application.manage_projects import ProjectChange
from cuepost.application.manage_webhooks import EndpointChange
from cuepost.application.milestone_book import Milestone
from cuepost.domain.delivery import FINAL
from cuepost.domain.errors import Refused
from cuepost.domain.event import SilenceReason
from cuepost.domain.project import MOVES, ProjectStatus
from tests.simulation.scene import Scene

EVERYTHING = ("project.ready", "project.completed", "project.failed", "project.cancelled")
MOST_ENDPOINTS = 4


@dataclass(slots=True)
class Owners(Scene):
    reports: int = 0

    async def add_endpoint(self) -> None:
        if len(self.endpoints) >= MOST_ENDPOINTS:
            return
        url = self.new_url()
        with self.store_whole():
            made = await self.stage.world.endpoint(*EVERYTHING, url=url)
        endpoint = made.view.endpoint
        self.endpoints[endpoint.id] = True
        self.ledger.created(endpoint.id, url, made.secret.reveal(), endpoint.created_at)

    async def move_endpoint(self) -> None:
        webhook_id, url = self.some_endpoint(), self.new_url()
        self.ledger.moved(webhook_id, url)
        await self._change(webhook_id, EndpointChange(url=url))

    async def disable_or_enable(self) -> None:
        webhook_id = self.some_endpoint()
        enabled = not self.endpoints[webhook_id]
        if enabled:
            self.ledger.started(webhook_id, self.now)
        await self._change(webhook_id, EndpointChange(enabled=enabled))
        self.endpoints[webhook_id] = enabled
        if not enabled:
            self.ledger.stopped(webhook_id, self.now)

    async def delete_endpoint(self) -> None:
        webhook_id, world = self.some_endpoint(), self.stage.world
        del self.endpoints[webhook_id]
        # After an answer that was lost, a second call finds nothing to delete.
        with suppress(Refused):
            await self.surely(
                lambda: world.do(world.service.webhooks.delete, world.owner, webhook_id)
            )
        self.ledger.deleted(webhook_id, self.now)
        if not self.endpoints:
            await self.add_endpoint()

    async def rotate(self) -> None:
        webhook_id, world = self.some_endpoint(), self.stage.world
        with self.store_whole():
            made = await world.do(world.service.webhooks.rotate_secret, world.owner, webhook_id)
        until = made.view.keyring.previous_expires_at
        assert until is not None
        self.ledger.rotated(webhook_id, made.secret.reveal(), self.now, until)

    async def end_overlap(self) -> None:
        webhook_id, world = self.some_endpoint(), self.stage.world
        await self.surely(
            lambda: world.do(world.service.webhooks.end_overlap, world.owner, webhook_id)
        )
        self.ledger.overlap_ended(webhook_id, self.now)

    async def send_test(self) -> None:
        webhook_id, world = self.some_endpoint(), self.stage.world
        with self.store_whole():
            await world.do(world.service.webhooks.send_test, world.owner, webhook_id)

    async def retry(self) -> None:
        webhook_id, world = self.some_endpoint(), self.stage.world
        with self.store_whole():
            ended = [
                each
                for each in await world.deliveries(webhook_id=webhook_id)
                if each.status in FINAL
            ]
            if ended:
                chosen = self.chance.choice(ended)
                await world.do(world.service.redeliver.one, world.owner, webhook_id, chosen.id)

    async def retry_many(self) -> None:
        webhook_id, world = self.some_endpoint(), self.stage.world
        with self.store_whole():
            await world.do(
                world.service.redeliver.start_bulk,
                world.owner,
                webhook_id,
                since=self.now - self.horizon,
                until=None,
                statuses=[],
                dry_run=False,
            )

    async def keep_house(self) -> None:
        """One step of what the chores do by themselves: nothing must depend on their pace."""
        world = self.stage.world
        service = world.service
        await self.surely(lambda: service.expiry.step(10))
        for job in await self.surely(lambda: world.see(lambda t: t.bulk_retries.running(10))):
            await self.surely(
                partial(world.do, service.redeliver.bulk_step, job.account_id, job.id, 3)
            )

    async def add_project(self) -> None:
        until = None
        if self.chance.random() < 0.4:
            until = self.now + self._some_time()
        with self.store_whole():
            made = await self.stage.world.project(ProjectStatus.PROCESSING, access_expires_at=until)
        self.projects[made.id] = made.status
        self.ledger.access_set(made.id, until, self.now)

    async def change_access(self) -> None:
        project_id, world = self.some_project(), self.stage.world
        until = self.now + self._some_time() if self.chance.random() < 0.7 else None
        change = ProjectChange(sets_access=True, access_expires_at=until)
        with self.store_whole():
            await world.do(world.service.projects.change, world.owner, project_id, change)
        self.ledger.access_set(project_id, until, self.now)

    async def delete_project(self) -> None:
        project_id, world = self.some_project(), self.stage.world
        with self.store_whole():
            await world.do(world.service.projects.delete, world.owner, project_id)
        self.ledger.project_deleted(project_id, self.now)

    async def report(self) -> None:
        await self._report([self.some_project()])

    async def report_many(self) -> None:
        wanted = self.chance.choices(list(self.projects), k=self.chance.randrange(2, 12))
        half = len(wanted) // 2
        await asyncio.gather(self._report(wanted[:half]), self._report(wanted[half:]))

    async def _report(self, project_ids: list[UUID]) -> None:
        milestones = [self._milestone(each) for each in project_ids]
        answers = await self.surely(lambda: self.stage.world.report(*milestones))
        for milestone, answer in zip(milestones, answers, strict=True):
            if answer.accepted:
                self.projects[milestone.project_id] = milestone.status
            if answer.event_id is not None:
                told = answer.reason in {None, SilenceReason.ENDPOINT_DISABLED}
                self.ledger.happened(
                    answer.event_id, milestone.project_id, set(self.endpoints) if told else set()
                )

    def _milestone(self, project_id: UUID) -> Milestone:
        """Most of the time a move that is allowed; projects are tried again and exported again."""
        self.reports += 1
        possible = sorted(MOVES[self.projects[project_id]] - {ProjectStatus.CANCELLED})
        status = self.chance.choice(possible or list(ProjectStatus))
        return Milestone(f"report-{self.reports}", project_id, status)

    def _some_time(self) -> timedelta:
        seconds = self.horizon.total_seconds() * self.chance.random() / 2
        return timedelta(seconds=int(seconds))

    async def _change(self, webhook_id: UUID, change: EndpointChange) -> None:
        world = self.stage.world
        await self.surely(
            lambda: world.do(world.service.webhooks.change, world.owner, webhook_id, change)
        )
