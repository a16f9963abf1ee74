"""Adds waiting and ended deliveries to a store while no worker runs."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from benchmarks.population import Populated, settings_of
from cuepost.bootstrap.container import Container, running
from cuepost.domain.attempt import Attempt, Outcome, Timings
from cuepost.domain.delivery import Delivery, DeliveryStatus, Trigger
from cuepost.domain.event import Event, event_body

AT_ONCE = 1_000
AGE = timedelta(minutes=10)
HISTORY = timedelta(days=28)
TYPE = "project.completed"
Made = tuple[Event, Delivery]
Group = Sequence[Made]


async def add_pending(
    settings: Mapping[str, str],
    populated: Populated,
    counts: Mapping[str, int],
    due_in: timedelta = -AGE,
) -> set[str]:
    """Adds deliveries to the endpoint of each path, overdue or due later; returns their events."""
    events: set[str] = set()
    async with running(settings_of(settings)) as container:
        now = container.system.clock.now()
        due, then = now + due_in, min(now, now + due_in)

        def groups() -> Iterator[Group]:
            for path, count in counts.items():
                for first in range(0, count, AT_ONCE):
                    times = [then] * min(AT_ONCE, count - first)
                    made = list(_made(container, populated, path, times, due))
                    events.update(str(event.id) for event, _ in made)
                    yield made

        await _add_all(container, groups())
    return events


async def add_history(
    settings: Mapping[str, str], populated: Populated, paths: Sequence[str], count: int
) -> None:
    """Adds deliveries of the last four weeks that succeeded, with their attempts."""
    async with running(settings_of(settings)) as container:
        begin = container.system.clock.now() - HISTORY
        for day in range(0, HISTORY.days + 1, 7):
            await container.store.prepare_days(begin + timedelta(days=day))
        step = (HISTORY - AGE) / count

        def groups() -> Iterator[Group]:
            for number, first in enumerate(range(0, count, AT_ONCE)):
                places = range(first, min(first + AT_ONCE, count))
                times = [begin + place * step for place in places]
                yield list(_made(container, populated, paths[number % len(paths)], times))

        await _add_all(container, groups())


def _made(
    container: Container,
    populated: Populated,
    path: str,
    times: Sequence[datetime],
    due: datetime | None = None,
) -> Iterator[Made]:
    """Ended deliveries, unless `due` is given."""
    account, webhook = populated.account_of[path], UUID(populated.webhook_of[path])
    ids = container.system.ids
    known = populated.projects[path]
    for then in times:
        project = UUID(known[0]) if known else ids(then)
        event_id = ids(then)
        data = {"projectId": str(project), "status": "completed", "stage": "export"}
        body = event_body(event_id, TYPE, then, data)
        yield (
            Event(account, event_id, TYPE, then, project, then, body),
            Delivery(
                account_id=account,
                id=ids(then),
                webhook_id=webhook,
                event_id=event_id,
                event_type=TYPE,
                project_id=project,
                trigger=Trigger.AUTOMATIC,
                status=DeliveryStatus.PENDING if due else DeliveryStatus.DELIVERED,
                created_at=then,
                attempt_count=0 if due else 1,
                next_attempt_at=due,
                finished_at=None if due else then,
            ),
        )


async def _add_all(container: Container, groups: Iterator[Group]) -> None:
    """Creates a batch while the previous one is written."""

    async def in_turn() -> None:
        for made in groups:
            await _add(container, made)

    async with asyncio.TaskGroup() as adding:
        for _ in range(2):
            adding.create_task(in_turn())


async def _add(container: Container, made: Group) -> None:
    ended = [delivery for _, delivery in made if delivery.finished_at is not None]
    async with container.store.transaction() as transaction:
        await transaction.events.add([event for event, _ in made])
        await transaction.deliveries.add([delivery for _, delivery in made])
        if ended:
            attempts = [
                attempt_of(each.account_id, each.id, each.event_id, each.created_at)
                for each in ended
            ]
            await transaction.attempts.add(attempts)


def attempt_of(account_id: UUID, delivery_id: UUID, event_id: UUID, at: datetime) -> Attempt:
    """A successful first attempt of realistic size."""
    return Attempt(
        account_id=account_id,
        delivery_id=delivery_id,
        budget=1,
        number=1,
        trigger=Trigger.AUTOMATIC,
        started_at=at,
        duration_ms=1.5,
        timings=Timings(first_byte_ms=1.0),
        signed_with=("whsec_…wxyz",),
        request_headers=(
            ("content-type", "application/json; charset=utf-8"),
            ("user-agent", "cuepost"),
            ("accept-encoding", "identity"),
            ("webhook-id", str(event_id)),
            ("webhook-timestamp", str(int(at.timestamp()))),
            ("webhook-signature", "v1," + "a" * 44),
        ),
        response_status=200,
        response_headers=(("content-length", "2"),),
        response_body=b"ok",
        response_truncated=False,
        outcome=Outcome.DELIVERED,
    )
