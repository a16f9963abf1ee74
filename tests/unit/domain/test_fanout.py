"""Fan-out: one delivery for each subscriber, also for those that are disabled."""

from dataclasses import replace

import pytest

from cuepost.domain.delivery import CancelReason, Delivery, DeliveryStatus, Trigger
from cuepost.domain.event import Event, Subscriber, deliveries_of
from cuepost.testing import START, SequentialIds

IDS = SequentialIds()
EVENT = Event(
    account_id=IDS(START),
    id=IDS(START),
    type="project.ready",
    created_at=START,
    project_id=IDS(START),
    occurred_at=START,
    body=b"{}",
)


def subscriber(*events: str, stopped: CancelReason | None = None) -> Subscriber:
    return Subscriber(IDS(START), frozenset(events), stopped)


def pending(made: Delivery, to: Subscriber) -> Delivery:
    """What `made` should look like, whatever its id."""
    return Delivery(
        account_id=EVENT.account_id,
        id=made.id,
        webhook_id=to.webhook_id,
        event_id=EVENT.id,
        event_type="project.ready",
        project_id=EVENT.project_id,
        trigger=Trigger.AUTOMATIC,
        status=DeliveryStatus.PENDING,
        created_at=START,
        reason=None,
        attempt_count=0,
        budget=1,
        next_attempt_at=START,
        finished_at=None,
    )


def test_each_subscriber_of_the_type_gets_a_delivery_that_is_due_at_once() -> None:
    one, other = subscriber("project.ready"), subscriber("project.ready", "project.failed")
    made = deliveries_of(EVENT, [one, subscriber("project.failed"), other], IDS)
    assert made == [pending(made[0], one), pending(made[1], other)]
    assert made[0].id < made[1].id


def test_without_subscribers_there_is_nothing_to_deliver() -> None:
    assert deliveries_of(EVENT, [subscriber("project.completed")], IDS) == []


@pytest.mark.parametrize("reason", [CancelReason.ENDPOINT_DISABLED, CancelReason.ACCESS_CLOSED])
def test_a_stopped_subscriber_gets_a_cancelled_record_that_says_why(reason: CancelReason) -> None:
    to = subscriber("project.ready", stopped=reason)
    [made] = deliveries_of(EVENT, [to], IDS)
    assert made == replace(
        pending(made, to),
        status=DeliveryStatus.CANCELLED,
        reason=reason,
        next_attempt_at=None,
        finished_at=START,
    )


def test_a_test_delivery_says_that_it_is_one() -> None:
    to = subscriber("project.ready")
    [made] = deliveries_of(EVENT, [to], IDS, Trigger.TEST)
    assert made == replace(pending(made, to), trigger=Trigger.TEST)
