"""What the owners of endpoints and projects do, and the pipeline that reports milestones."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from anyio.lowlevel import checkpoint

from cuepost.application.manage_projects import ProjectChange
from cuepost.application.manage_webhooks import EndpointChange
from cuepost.application.milestone_batch import Milestone
from cuepost.domain.access import Caller
from cuepost.domain.delivery import FINAL
from cuepost.domain.errors import Refused
from cuepost.domain.event import SilenceReason
from cuepost.domain.project import MOVES, ProjectStatus
from tests.simulation.simulation_state import SimulationState

EVERYTHING = ("project.ready", "project.completed", "project.failed", "project.cancelled")
MOST_ENDPOINTS = 4
MOST_AWAITS = 60


@dataclass(slots=True)
class Owners(SimulationState):
    reports: int = 0

    async def add_endpoint(self, caller: Caller | None = None) -> None:
        if len(self.endpoints) >= MOST_ENDPOINTS:
            return
        caller, url, at = caller or self.some_caller(), self.new_url(), self.really
        with self.store_whole():
            made = await self.engine.harness.endpoint(*EVERYTHING, url=url, caller=caller)
        endpoint = made.view.endpoint
        self.endpoints[endpoint.id] = True
        self.ledger.belongs(caller.account, endpoint.id)
        self.ledger.created(endpoint.id, url, made.secret.reveal(), at)

    async def move_endpoint(self) -> None:
        webhook_id, url = self.some_endpoint(), self.new_url()
        self.ledger.moved(webhook_id, url)
        await self._change(webhook_id, EndpointChange(url=url))

    async def disable_or_enable(self) -> None:
        webhook_id = self.some_endpoint()
        enabled = not self.endpoints[webhook_id]
        if enabled:
            self.ledger.started(webhook_id, self.really)
        await self._change(webhook_id, EndpointChange(enabled=enabled))
        self.endpoints[webhook_id] = enabled
        if not enabled:
            self.ledger.stopped(webhook_id, self.really)

    async def delete_endpoint(self) -> None:
        webhook_id, harness = self.some_endpoint(), self.engine.harness
        owner = self.owner_of(webhook_id)
        del self.endpoints[webhook_id]
        # After an answer that was lost, a second call finds nothing to delete.
        with suppress(Refused):
            await self.surely(
                lambda: harness.do(harness.service.webhooks.delete, owner, webhook_id)
            )
        self.ledger.deleted(webhook_id, self.really)
        if not self.endpoints:
            await self.add_endpoint()

    async def rotate(self) -> None:
        webhook_id, harness = self.some_endpoint(), self.engine.harness
        with self.store_whole():
            made = await harness.do(
                harness.service.webhooks.rotate_secret, self.owner_of(webhook_id), webhook_id
            )
        until = made.view.keyring.previous_expires_at
        assert until is not None
        self.ledger.rotated(webhook_id, made.secret.reveal(), self.really, until)

    async def end_overlap(self) -> None:
        webhook_id, harness = self.some_endpoint(), self.engine.harness
        owner = self.owner_of(webhook_id)
        await self.surely(
            lambda: harness.do(harness.service.webhooks.end_overlap, owner, webhook_id)
        )
        self.ledger.overlap_ended(webhook_id, self.really)

    async def send_test(self) -> None:
        webhook_id, harness = self.some_endpoint(), self.engine.harness
        owner = self.owner_of(webhook_id)
        with self.store_whole():
            made = await harness.do(harness.service.webhooks.send_test, owner, webhook_id)
        self.ledger.belongs(owner.account, made.event_id, made.id)

    async def retry(self) -> None:
        webhook_id, harness = self.some_endpoint(), self.engine.harness
        owner = self.owner_of(webhook_id)
        with self.store_whole():
            found = await harness.deliveries(owner, webhook_id=webhook_id)
            if ended := [each for each in found if each.status in FINAL]:
                chosen = self.chance.choice(ended)
                await harness.do(harness.service.redeliver.one, owner, webhook_id, chosen.id)

    async def retry_many(self) -> None:
        webhook_id, harness = self.some_endpoint(), self.engine.harness
        with self.store_whole():
            await harness.do(
                harness.service.redeliver.start_bulk,
                self.owner_of(webhook_id),
                webhook_id,
                since=self.now - self.horizon,
                until=None,
                statuses=[],
                dry_run=False,
            )

    async def add_project(self, caller: Caller | None = None) -> None:
        caller, until = caller or self.some_caller(), None
        if self.chance.random() < 0.4:
            until = self.now + self._some_time()
        with self.store_whole():
            made = await self.engine.harness.project(
                ProjectStatus.PROCESSING, caller=caller, access_expires_at=until
            )
        self.projects[made.id] = made.status
        self.ledger.belongs(caller.account, made.id)
        self.ledger.access_set(made.id, until, self.really)

    async def change_access(self) -> None:
        project_id, harness = self.some_project(), self.engine.harness
        until = self.now + self._some_time() if self.chance.random() < 0.7 else None
        change = ProjectChange(sets_access=True, access_expires_at=until)
        with self.store_whole():
            owner = self.owner_of(project_id)
            await harness.do(harness.service.projects.change, owner, project_id, change)
        self.ledger.access_set(project_id, until, self.really)

    async def delete_project(self) -> None:
        project_id, harness = self.some_project(), self.engine.harness
        with self.store_whole():
            await harness.do(harness.service.projects.delete, self.owner_of(project_id), project_id)
        self.ledger.project_deleted(project_id, self.really)
        await self.add_project(self.owner_of(project_id))
        if self.chance.random() < 0.7:
            del self.projects[project_id]

    async def report(self) -> None:
        project_id = self.some_project()
        await self._report([self._milestone(project_id, self.projects[project_id])])

    async def report_many(self) -> None:
        milestones = self._some_milestones()
        half = len(milestones) // 2
        await asyncio.gather(self._report(milestones[:half]), self._report(milestones[half:]))

    async def report_and_hang_up(self) -> None:
        """The caller is gone before an answer comes, at any await, and asks again later."""
        milestones = self._some_milestones()
        async with asyncio.TaskGroup() as tasks:
            asking = tasks.create_task(self._report(milestones))
            await self.some_awaits()
            asking.cancel()
        await self._report(milestones)

    async def some_awaits(self) -> None:
        for _ in range(self.chance.randrange(MOST_AWAITS)):
            await checkpoint()

    def _some_milestones(self) -> list[Milestone]:
        """Of some projects what becomes of them one after the other."""
        wanted = self.chance.choices(list(self.projects), k=self.chance.randrange(2, 16))
        expected = dict(self.projects)
        made = []
        for project_id in sorted(wanted):
            made.append(self._milestone(project_id, expected[project_id]))
            expected[project_id] = made[-1].status
        return made

    async def _report(self, milestones: list[Milestone]) -> None:
        answers = await self.surely(lambda: self.engine.harness.report(*milestones))
        for milestone, answer in zip(milestones, answers, strict=True):
            if answer.accepted:
                self.projects[milestone.project_id] = milestone.status
            if answer.event_id is None:
                continue
            reported = answer.reason in {None, SilenceReason.ENDPOINT_DISABLED}
            account = self.owner_of(milestone.project_id).account
            theirs = {each for each in self.endpoints if self.owner_of(each).account == account}
            self.ledger.belongs(account, answer.event_id)
            self.ledger.happened(
                answer.event_id, milestone.project_id, theirs if reported else set()
            )

    def _milestone(self, project_id: UUID, status: ProjectStatus) -> Milestone:
        """Most of the time a move that is allowed; projects are tried again and exported again."""
        self.reports += 1
        possible = sorted(MOVES[status] - {ProjectStatus.CANCELLED})
        status = self.chance.choice(possible or list(ProjectStatus))
        return Milestone(f"report-{self.reports}", project_id, status)

    def _some_time(self) -> timedelta:
        seconds = self.horizon.total_seconds() * self.chance.random() / 2
        return timedelta(seconds=int(seconds))

    async def _change(self, webhook_id: UUID, change: EndpointChange) -> None:
        harness, owner = self.engine.harness, self.owner_of(webhook_id)
        await self.surely(
            lambda: harness.do(harness.service.webhooks.change, owner, webhook_id, change)
        )
