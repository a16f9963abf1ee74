"""Health: what an endpoint remembers of its attempts, and what that means."""

from datetime import datetime, timedelta

import pytest

from cuepost.domain.endpoint import Endpoint
from cuepost.domain.health import QUIET, Condition, Health, HealthState, Recent, health
from cuepost.testing import START, SequentialIds

SECOND = timedelta(seconds=1)
DELIVERED = START + timedelta(hours=2)
TROUBLED = START + timedelta(hours=3)
FAILING = START + timedelta(hours=4)
H = HealthState


def endpoint(**changed: object) -> Endpoint:
    ids = SequentialIds()
    values: dict[str, object] = {
        "account_id": ids(START),
        "id": ids(START),
        "url": "https://hooks.example.com/cue",
        "events": ("project.completed",),
        "description": "",
        "enabled": True,
        "created_at": START,
        "updated_at": START + timedelta(hours=1),
    }
    return Endpoint(**(values | changed))  # type: ignore[arg-type]  # named by the test


@pytest.mark.parametrize(
    ("changed", "unsuccessful", "state", "since"),
    [
        ({}, (0, 0), H.UNKNOWN, START),
        ({}, (2, 0), H.DEGRADED, None),
        ({"last_delivered_at": DELIVERED}, (0, 0), H.HEALTHY, DELIVERED),
        ({"last_delivered_at": DELIVERED}, (1, 0), H.DEGRADED, None),
        ({"last_delivered_at": DELIVERED}, (0, 1), H.DEGRADED, None),
        # Two attempts failed, then the delivery was cancelled: nothing waits, nothing has failed.
        (
            {"last_delivered_at": DELIVERED, "troubled_since": TROUBLED},
            (0, 0),
            H.DEGRADED,
            TROUBLED,
        ),
        (
            {"last_delivered_at": DELIVERED, "troubled_since": TROUBLED, "failing_since": FAILING},
            (3, 1),
            H.FAILING,
            FAILING,
        ),
        # It answers again, but not for long enough.
        ({"last_delivered_at": DELIVERED, "failing_since": FAILING}, (0, 0), H.DEGRADED, FAILING),
        (
            {"enabled": False, "failing_since": FAILING, "troubled_since": TROUBLED},
            (1, 1),
            H.DISABLED,
            START + timedelta(hours=1),
        ),
    ],
)
def test_health_tells_the_state_and_since_when(
    changed: dict[str, object],
    unsuccessful: tuple[int, int],
    state: HealthState,
    since: datetime | None,
) -> None:
    judged = endpoint(**changed)
    assert health(judged, *unsuccessful) == Health(
        state, since, judged.last_delivered_at, *unsuccessful
    )


def test_a_condition_is_that_of_its_endpoint() -> None:
    judged = endpoint(
        last_delivered_at=DELIVERED,
        last_failed_at=TROUBLED,
        troubled_since=TROUBLED,
        failing_since=FAILING,
    )
    assert Condition.of(judged) == Condition(DELIVERED, TROUBLED, TROUBLED, FAILING)


def test_trouble_begins_with_the_first_failed_attempt_and_ends_with_an_acknowledged_one() -> None:
    first = Condition(DELIVERED).attempt_failed(TROUBLED)
    assert first == Condition(DELIVERED, TROUBLED, TROUBLED)
    second = first.attempt_failed(TROUBLED + SECOND)
    assert second == Condition(DELIVERED, TROUBLED + SECOND, TROUBLED)
    again = second.acknowledged(TROUBLED + 2 * SECOND)
    assert again == Condition(TROUBLED + 2 * SECOND, TROUBLED + SECOND)


def test_it_fails_when_nothing_arrived_while_a_delivery_was_tried() -> None:
    spent = Condition(DELIVERED).delivery_failed(DELIVERED + SECOND, Recent(9, 1), FAILING)
    assert spent == Condition(DELIVERED, FAILING, FAILING, FAILING)
    never = Condition().delivery_failed(START, Recent(0, 1), FAILING)
    assert never.failing_since == FAILING


def test_one_failed_delivery_among_many_that_arrive_is_no_failure() -> None:
    spent = Condition(DELIVERED).delivery_failed(DELIVERED - SECOND, Recent(9, 1), FAILING)
    assert spent == Condition(DELIVERED, FAILING, FAILING, None)


def test_it_fails_when_most_deliveries_fail_although_some_arrive() -> None:
    spent = Condition(DELIVERED).delivery_failed(DELIVERED - SECOND, Recent(5, 5), FAILING)
    assert spent.failing_since == FAILING
    assert spent.delivery_failed(DELIVERED, Recent(5, 6), FAILING + SECOND).failing_since == FAILING


def test_recent_deliveries_add_up() -> None:
    assert Recent(1, 2).plus(delivered=3, failed=4) == Recent(4, 6)
    assert not Recent().mostly_failed


def test_it_has_recovered_once_no_attempt_has_failed_for_a_while() -> None:
    failing = Condition(DELIVERED, FAILING, FAILING, FAILING)
    assert not failing.has_recovered(FAILING + QUIET)
    soon = failing.acknowledged(FAILING + SECOND)
    assert soon == Condition(FAILING + SECOND, FAILING, None, FAILING)
    assert not soon.has_recovered(FAILING + QUIET - SECOND)
    assert soon.has_recovered(FAILING + QUIET)
    later = soon.acknowledged(FAILING + QUIET)
    assert later == Condition(FAILING + QUIET, FAILING, None, None)
    assert Condition(DELIVERED, None, None, FAILING).has_recovered(FAILING)
    assert not Condition(DELIVERED).has_recovered(FAILING)
