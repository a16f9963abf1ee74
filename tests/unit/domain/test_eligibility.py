"""Which projects notify: videos that are there and inside their access window."""

from datetime import timedelta

import pytest

from cuepost.domain.event import SilenceReason
from cuepost.domain.project import Ineligible, Origin, ProjectKind, ineligibility
from cuepost.testing import START, Factory, SequentialIds, VirtualClock

IDS = SequentialIds()
FACTORY = Factory(IDS, VirtualClock())
SOON = START + timedelta(milliseconds=1)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({}, None),
        ({"access_expires_at": SOON}, None),
        ({"kind": ProjectKind.TRANSCRIPT}, Ineligible.STANDALONE_TRANSCRIPT),
        ({"access_expires_at": START}, Ineligible.PROJECT_ACCESS_EXPIRED),
        ({"deleted_at": START}, Ineligible.PROJECT_DELETED),
        (
            {"kind": ProjectKind.TRANSCRIPT, "access_expires_at": START},
            Ineligible.STANDALONE_TRANSCRIPT,
        ),
        ({"kind": ProjectKind.TRANSCRIPT, "deleted_at": START}, Ineligible.PROJECT_DELETED),
    ],
)
def test_a_project_notifies_unless_there_is_a_reason(
    changed: dict[str, object], reason: Ineligible | None
) -> None:
    assert ineligibility(FACTORY.project(IDS(START), **changed), START) is reason


@pytest.mark.parametrize("origin", Origin)
def test_where_a_project_was_created_does_not_matter(origin: Origin) -> None:
    assert ineligibility(FACTORY.project(IDS(START), origin=origin), START) is None


def test_projects_come_from_the_application_the_api_and_mcp() -> None:
    assert set(Origin) == {"app", "api", "mcp"}


@pytest.mark.parametrize("reason", Ineligible)
def test_each_reason_can_be_stored_with_an_event(reason: Ineligible) -> None:
    assert SilenceReason(reason).value == reason.value
