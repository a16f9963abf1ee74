"""Endpoints: subscriptions, and the keyring with its rotation overlap."""

from dataclasses import replace
from datetime import timedelta

import pytest

from cuepost.domain.endpoint import (
    Keyring,
    StoredSecret,
    subscription,
)
from cuepost.domain.errors import FieldError, Invalid, RotationOverlapActive
from cuepost.testing import START

OVERLAP = timedelta(hours=24)
TICK = timedelta(milliseconds=1)
FIRST = StoredSecret(1, b"sealed-one", "whsec_…none", START)
SECOND = StoredSecret(2, b"sealed-two", "whsec_…ztwo", START + timedelta(days=1))
CHOOSE = (
    "Choose from project.completed, project.failed, project.ready, project.cancelled, "
    "endpoint.failing, endpoint.recovered."
)


@pytest.mark.parametrize("events", [None, [], ()])
def test_without_a_choice_the_default_types_are_subscribed(events: list[str] | None) -> None:
    assert subscription(events) == ("project.completed", "project.failed")


@pytest.mark.parametrize(
    ("chosen", "stored"),
    [
        (["project.ready"], ("project.ready",)),
        (["project.ready", "project.completed"], ("project.completed", "project.ready")),
        (["project.failed", "project.failed"], ("project.failed",)),
        (
            ["project.cancelled", "project.ready", "project.failed", "project.completed"],
            ("project.completed", "project.failed", "project.ready", "project.cancelled"),
        ),
    ],
)
def test_chosen_types_are_kept_once_in_the_order_of_the_catalogue(
    chosen: list[str], stored: tuple[str, ...]
) -> None:
    assert subscription(chosen) == stored


def test_every_wrong_type_is_named_with_its_place() -> None:
    with pytest.raises(Invalid) as refused:
        subscription(["project.ready", "webhook.test", "project.exploded"])
    assert refused.value.errors == (
        FieldError(
            "events[1]",
            "event_type_not_subscribable",
            "webhook.test is sent on request; it has no subscription.",
        ),
        FieldError("events[2]", "unknown_event_type", CHOOSE),
    )


def test_a_fresh_endpoint_has_one_secret_and_may_rotate() -> None:
    keyring = Keyring.at(START, [FIRST])
    assert keyring == Keyring(FIRST)
    assert keyring.previous_expires_at is None
    keyring.require_rotation_allowed()


def test_rotation_keeps_the_previous_secret_for_twenty_four_hours() -> None:
    rotated = Keyring(FIRST).rotated(SECOND, OVERLAP)
    end = SECOND.created_at + timedelta(hours=24)
    assert rotated == Keyring(SECOND, replace(FIRST, expires_at=end))
    assert rotated.previous_expires_at == end


@pytest.mark.parametrize(
    ("after_rotation", "overlapping"),
    [(timedelta(0), True), (OVERLAP - TICK, True), (OVERLAP, False), (OVERLAP + TICK, False)],
)
def test_the_overlap_ends_exactly_after_twenty_four_hours(
    after_rotation: timedelta, overlapping: bool
) -> None:
    previous = FIRST.expiring(SECOND.created_at + OVERLAP)
    keyring = Keyring.at(SECOND.created_at + after_rotation, [previous, SECOND])
    assert keyring == Keyring(SECOND, previous if overlapping else None)


def test_during_an_overlap_rotation_is_blocked_until_its_end() -> None:
    rotated = Keyring(FIRST).rotated(SECOND, OVERLAP)
    with pytest.raises(RotationOverlapActive) as refused:
        rotated.require_rotation_allowed()
    assert refused.value.details == {"availableAt": "2026-01-04T03:04:05.678Z"}
    assert str(refused.value) == (
        "The previous secret works until 2026-01-04T03:04:05.678Z; rotate again after that, "
        "or end the overlap now."
    )


def test_of_several_old_secrets_only_the_live_one_overlaps() -> None:
    now = START + timedelta(days=3)
    oldest = FIRST.expiring(START + timedelta(days=2))
    previous = SECOND.expiring(now + TICK)
    current = StoredSecret(3, b"sealed-three", "whsec_…ztri", now)
    assert Keyring.at(now, [previous, current, oldest]) == Keyring(current, previous)


def test_a_stored_secret_shows_its_hint_and_nothing_more() -> None:
    assert repr(Keyring(FIRST)) == (
        "Keyring(current=StoredSecret(version=1, whsec_…none), previous=None)"
    )
