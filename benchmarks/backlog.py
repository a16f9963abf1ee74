"""Deliveries that have been due for long, put into a store that nobody sends from."""

from collections.abc import Mapping
from datetime import timedelta
from uuid import UUID

from benchmarks.furnishing import Furnished
from cuepost.bootstrap.parts import Parts, running
from cuepost.domain.delivery import Delivery, DeliveryStatus, Trigger
from cuepost.domain.event import Event, freeze
from cuepost.settings import load

AT_ONCE = 1_000
AGE = timedelta(minutes=10)


async def put_off(
    settings: Mapping[str, str], furnished: Furnished, counts: Mapping[str, int]
) -> None:
    """So many overdue deliveries to the endpoint of each path."""
    chosen = load({f"CUEPOST_{name}": value for name, value in settings.items()})
    async with running(chosen) as parts:
        for path, count in counts.items():
            account, webhook = furnished.account_of[path], UUID(furnished.webhook_of[path])
            project = UUID(furnished.projects[path][0])
            for first in range(0, count, AT_ONCE):
                await _add(parts, account, webhook, project, min(AT_ONCE, count - first))


async def _add(parts: Parts, account: UUID, webhook: UUID, project: UUID, count: int) -> None:
    then = parts.ambient.clock.now() - AGE
    events, deliveries = [], []
    for _ in range(count):
        event_id = parts.ambient.ids(then)
        data = {"projectId": str(project), "status": "completed", "stage": "export"}
        body = freeze(event_id, "project.completed", then, data)
        events.append(Event(account, event_id, "project.completed", then, project, then, body))
        deliveries.append(
            Delivery(
                account_id=account,
                id=parts.ambient.ids(then),
                webhook_id=webhook,
                event_id=event_id,
                event_type="project.completed",
                project_id=project,
                trigger=Trigger.AUTOMATIC,
                status=DeliveryStatus.PENDING,
                created_at=then,
                next_attempt_at=then,
            )
        )
    async with parts.store.transaction() as transaction:
        await transaction.events.add(events)
        await transaction.deliveries.add(deliveries)
