"""Something of every kind that a page can show, to be looked at by its owner or by a stranger."""

from dataclasses import dataclass
from uuid import UUID

from cuepost.domain.access import Role
from cuepost.domain.delivery import DeliveryStatus
from cuepost.interfaces.web.page_context import PageRoute
from tests.interfaces.web.page_client import PageClient, member_of


@dataclass(frozen=True)
class Owned:
    """The ids of what belongs to someone, one of each kind."""

    webhook_id: UUID
    delivery_id: UUID
    event_id: UUID
    job_id: UUID
    project_id: UUID
    key_id: UUID
    member_id: UUID
    invitation_id: UUID
    token: str

    def path_to(self, page: PageRoute) -> str:
        names = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return page.path.format(**names)


async def owned_objects_of(page_client: PageClient) -> Owned:
    harness, owner = page_client.harness, page_client.harness.owner
    webhook_id = (await harness.endpoint()).view.endpoint.id
    delivery = await harness.complete()
    await harness.end(delivery, DeliveryStatus.FAILED)
    job = await harness.do(
        harness.service.redeliver.start_bulk,
        owner,
        webhook_id,
        since=harness.clock.now(),
        until=None,
        statuses=(),
        dry_run=False,
    )
    key = await harness.do(
        harness.service.keys.create, owner, name="theirs", scopes=owner.scopes, expires_at=None
    )
    member = await member_of(page_client, Role.VIEWER, "theirs@example.com")
    invited = await harness.do(harness.service.members.invite, owner, Role.VIEWER, None)
    inbox = await harness.do(harness.service.inbox.mine, owner)
    assert delivery.project_id is not None
    return Owned(
        webhook_id,
        delivery.id,
        delivery.event_id,
        job.id,
        delivery.project_id,
        key.key.id,
        member.id,
        invited.invitation.id,
        inbox.token,
    )
