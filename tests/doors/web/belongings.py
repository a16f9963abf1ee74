"""Something of every kind that a page can show, to be looked at by its owner or by a stranger."""

from dataclasses import dataclass
from uuid import UUID

from cuepost.domain.delivery import DeliveryStatus
from cuepost.doors.web.visit import PageRoute
from tests.doors.web.guest import Guest


@dataclass(frozen=True)
class Owned:
    """The ids of what belongs to somebody, one of each kind."""

    webhook_id: UUID
    delivery_id: UUID
    event_id: UUID
    job_id: UUID
    project_id: UUID
    key_id: UUID
    token: str

    def path_to(self, page: PageRoute) -> str:
        names = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return page.path.format(**names)


async def belongings_of(guest: Guest) -> Owned:
    world, owner = guest.world, guest.world.owner
    webhook_id = (await world.endpoint()).view.endpoint.id
    delivery = await world.complete()
    await world.end(delivery, DeliveryStatus.FAILED)
    job = await world.do(
        world.service.redeliver.start_bulk,
        owner,
        webhook_id,
        since=world.clock.now(),
        until=None,
        statuses=(),
        dry_run=False,
    )
    key = await world.do(
        world.service.keys.create, owner, name="theirs", scopes=owner.scopes, expires_at=None
    )
    inbox = await world.do(world.service.inbox.mine, owner)
    assert delivery.project_id is not None
    return Owned(
        webhook_id,
        delivery.id,
        delivery.event_id,
        job.id,
        delivery.project_id,
        key.key.id,
        inbox.token,
    )
