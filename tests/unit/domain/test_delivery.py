"""The delivery's state machine: every status, every cause, one table."""

import pytest

from cuepost.domain.delivery import (
    FINAL,
    LIVE,
    CancelReason,
    Delivery,
    DeliveryStatus,
    IllegalDeliveryTransition,
    TransitionCause,
    Trigger,
    after,
)
from cuepost.domain.errors import DeliveryInProgress
from cuepost.testing import START, SequentialIds

# By hand; a row is the cause, a column the status in which it strikes, a cell what follows.
GRID = """
                               pending    delivering  retrying    delivered  failed   cancelled
CLAIMED                        delivering -           delivering  -          -        -
RELEASED_BEFORE_FIRST_ATTEMPT  -          pending     -           -          -        -
RELEASED_BETWEEN_ATTEMPTS      -          retrying    -           -          -        -
SUCCEEDED                      -          delivered   -           -          -        -
ATTEMPT_FAILED                 -          retrying    -           -          -        -
BUDGET_SPENT                   -          failed      -           -          -        -
STOPPED                        cancelled  cancelled   cancelled   -          -        -
SENT_AGAIN                     -          -           -           pending    pending  pending
"""
COLUMNS, *ROWS = (line.split() for line in GRID.strip().splitlines())
CASES = [
    (DeliveryStatus(column), TransitionCause[row[0]], None if cell == "-" else DeliveryStatus(cell))
    for row in ROWS
    for column, cell in zip(COLUMNS, row[1:], strict=True)
]


def test_the_grid_names_every_status_with_every_cause() -> None:
    assert {case[:2] for case in CASES} == {(s, c) for s in DeliveryStatus for c in TransitionCause}


@pytest.mark.parametrize(("status", "cause", "follows"), CASES)
def test_a_delivery_moves_only_as_the_table_says(
    status: DeliveryStatus, cause: TransitionCause, follows: DeliveryStatus | None
) -> None:
    if follows is None:
        with pytest.raises(
            IllegalDeliveryTransition, match=f"^{status} has no transition for '{cause}'$"
        ):
            after(status, cause)
    else:
        assert after(status, cause) is follows


def test_what_is_stored_and_told_is_called_as_it_always_was() -> None:
    assert list(CancelReason) == [
        "endpoint_disabled",
        "project_deleted",
        "project_access_expired",
        "access_closed",
    ]
    assert list(Trigger) == ["automatic", "manual", "test"]
    assert list(TransitionCause) == [
        "claimed",
        "released before its first attempt",
        "released between attempts",
        "receiver answered 2xx",
        "attempt failed",
        "last attempt failed",
        "stopped",
        "sent again by hand",
    ]


def test_every_status_is_either_live_or_final() -> None:
    assert set(LIVE) == {"pending", "delivering", "retrying"}
    assert set(FINAL) == {"delivered", "failed", "cancelled"}


def delivery(status: DeliveryStatus) -> Delivery:
    ids = SequentialIds()
    return Delivery(
        account_id=ids(START),
        id=ids(START),
        webhook_id=ids(START),
        event_id=ids(START),
        event_type="project.ready",
        project_id=ids(START),
        trigger=Trigger.AUTOMATIC,
        status=status,
        created_at=START,
    )


def test_a_new_delivery_has_its_first_budget_and_no_attempt() -> None:
    made = delivery(DeliveryStatus.PENDING)
    assert (made.budget, made.attempt_count) == (1, 0)
    assert (made.reason, made.next_attempt_at, made.finished_at) == (None, None, None)


@pytest.mark.parametrize("status", FINAL)
def test_a_delivery_that_has_ended_may_be_sent_again(status: DeliveryStatus) -> None:
    ended = delivery(status)
    assert ended.require_final() is ended


@pytest.mark.parametrize("status", LIVE)
def test_a_delivery_under_way_may_not_be_sent_again(status: DeliveryStatus) -> None:
    with pytest.raises(DeliveryInProgress) as refused:
        delivery(status).require_final()
    assert str(refused.value) == (
        f"The delivery is {status}; it can be sent again once it has ended."
    )
