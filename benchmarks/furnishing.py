"""Fills a store before a scenario begins, through the product's own use cases."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from uuid import UUID

from cuepost.application.manage_webhooks import Unveiled
from cuepost.application.milestone_book import Milestone
from cuepost.application.service import Service
from cuepost.bootstrap.parts import running
from cuepost.domain.access import ACCOUNT_SCOPES, SERVICE_SCOPES, Caller, Door
from cuepost.domain.project import Origin, Project, ProjectKind, ProjectStatus
from cuepost.ports.store import Transaction
from cuepost.settings import load

AT_ONCE = 500
OPERATOR = Caller(Door.CLI, "operator", None, frozenset())
PIPELINE = Caller(Door.REST, "key:pipeline", None, SERVICE_SCOPES)


@dataclass(slots=True)
class Furnished:
    """By path: the endpoint, and the ids of projects whose next milestone is their completion."""

    service_key: str = ""
    webhook_of: dict[str, str] = field(default_factory=dict)
    secret_of: dict[str, str] = field(default_factory=dict)
    account_of: dict[str, UUID] = field(default_factory=dict)
    projects: dict[str, list[str]] = field(default_factory=dict)


async def furnish(settings: Mapping[str, str], urls: Mapping[str, str], projects: int) -> Furnished:
    found = Furnished()
    chosen = load({f"CUEPOST_{name}": value for name, value in settings.items()})
    async with running(chosen, migrating=True) as parts:
        service = parts.service
        for path, url in urls.items():
            owner = await _account(service)
            made = await service.perform.change(partial(_new_endpoint, service, owner, url))
            webhook_id = str(made.view.endpoint.id)
            found.account_of[path] = owner.account
            found.webhook_of[path] = webhook_id
            found.secret_of[webhook_id] = made.secret.reveal()
            found.projects[path] = [
                str(each.id) for each in await _exporting(service, owner, projects)
            ]
        key = await service.perform.change(
            lambda transaction: service.access.create_key(
                transaction, OPERATOR, None, name="bench", scopes=SERVICE_SCOPES
            )
        )
        found.service_key = key.token
    return found


async def _account(service: Service) -> Caller:
    account = await service.perform.change(
        lambda transaction: service.access.create_account(transaction, OPERATOR, "Bench", True)
    )
    return Caller(Door.REST, "key:bench", account.id, ACCOUNT_SCOPES, webhooks_enabled=True)


async def _exporting(service: Service, owner: Caller, count: int) -> Sequence[Project]:
    made: list[Project] = []
    while len(made) < count:
        made += await service.perform.change(
            partial(_new_projects, service, owner, min(AT_ONCE, count - len(made)))
        )
    for status in (ProjectStatus.PROCESSING, ProjectStatus.EXPORTING):
        for first in range(0, count, AT_ONCE):
            await service.milestones.report(
                PIPELINE,
                [
                    Milestone(f"{each.id}-{status}", each.id, status)
                    for each in made[first : first + AT_ONCE]
                ],
            )
    return made


async def _new_endpoint(
    service: Service, owner: Caller, url: str, transaction: Transaction
) -> Unveiled:
    return await service.webhooks.create(transaction, owner, url, ["project.completed"], "")


async def _new_projects(
    service: Service, owner: Caller, count: int, transaction: Transaction
) -> list[Project]:
    return [
        await service.projects.create(
            transaction,
            owner,
            name="Trailer",
            kind=ProjectKind.VIDEO,
            origin=Origin.API,
            access_expires_at=None,
        )
        for _ in range(count)
    ]
