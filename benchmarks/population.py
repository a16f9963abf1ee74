"""Populates a store for a scenario: accounts with endpoints, projects about to complete, a key."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeVar
from uuid import UUID

from cuepost.bootstrap.container import Container, running
from cuepost.domain.access import ACCOUNT_SCOPES, SERVICE_SCOPES, Caller, Interface
from cuepost.domain.project import Origin, Project, ProjectKind, ProjectStatus, Stage
from cuepost.ports.store import Transaction
from cuepost.settings import Settings, load

T = TypeVar("T")
AT_ONCE = 500
OPERATOR = Caller(Interface.CLI, "operator", None, frozenset())


@dataclass(slots=True)
class Populated:
    """By path: the endpoint, and the ids of projects whose next milestone is their completion."""

    service_key: str = ""
    webhook_of: dict[str, str] = field(default_factory=dict)
    secret_of: dict[str, str] = field(default_factory=dict)
    account_of: dict[str, UUID] = field(default_factory=dict)
    projects: dict[str, list[str]] = field(default_factory=dict)

    def in_turn(self, paths: Iterable[str] | None = None) -> list[str]:
        """The projects, round robin over the endpoints."""
        chosen = [self.projects[path] for path in paths or self.projects]
        return [each for some in zip(*chosen, strict=True) for each in some]


def settings_of(chosen: Mapping[str, str]) -> Settings:
    return load({f"CUEPOST_{name}": value for name, value in chosen.items()})


async def populate(
    settings: Mapping[str, str], urls: Mapping[str, str], projects: int
) -> Populated:
    """An account with one endpoint for each path, and a number of projects for each account."""
    found = Populated()
    async with running(settings_of(settings), migrating=True) as container:
        for some in pieces(urls.items()):
            async with container.store.transaction() as transaction:
                for path, url in some:
                    await _add_endpoint(transaction, container, found, path, url)
        wanted = ((path, account) for path, account in found.account_of.items())
        made = (
            (path, _project(container, account))
            for path, account in wanted
            for _ in range(projects)
        )
        found.projects = {path: [] for path in urls}
        for group in pieces(made):
            async with container.store.transaction() as transaction:
                for path, project in group:
                    await transaction.projects.add(project)
                    found.projects[path].append(str(project.id))
        key = await container.service.perform.change(
            lambda transaction: container.service.access.create_key(
                transaction, OPERATOR, None, name="bench", scopes=SERVICE_SCOPES
            )
        )
        found.service_key = key.token
    return found


async def _add_endpoint(
    transaction: Transaction, container: Container, found: Populated, path: str, url: str
) -> None:
    service = container.service
    account = await service.access.create_account(transaction, OPERATOR, "Bench", True)
    owner = Caller(Interface.REST, "key:bench", account.id, ACCOUNT_SCOPES, webhooks_enabled=True)
    made = await service.webhooks.create(transaction, owner, url, ["project.completed"], "")
    webhook_id = str(made.view.endpoint.id)
    found.account_of[path] = account.id
    found.webhook_of[path] = webhook_id
    found.secret_of[webhook_id] = made.secret.reveal()


def _project(container: Container, account_id: UUID) -> Project:
    now = container.system.clock.now()
    return Project(
        account_id=account_id,
        id=container.system.ids(now),
        name="Trailer",
        kind=ProjectKind.VIDEO,
        origin=Origin.API,
        status=ProjectStatus.EXPORTING,
        stage=Stage.EXPORT,
        access_expires_at=None,
        created_at=now,
        updated_at=now,
    )


def pieces(things: Iterable[T], size: int = AT_ONCE) -> Iterator[Sequence[T]]:
    left = iter(things)
    while piece := list(islice(left, size)):
        yield piece
