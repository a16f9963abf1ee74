"""A version changes with what an owner changes, and with nothing else."""

from dataclasses import fields, replace
from datetime import timedelta
from typing import Any

import pytest

from cuepost.domain.endpoint import Endpoint, Keyring, StoredSecret
from cuepost.domain.errors import PreconditionFailed
from cuepost.domain.project import Origin, Project, ProjectKind, ProjectStatus, Stage
from cuepost.domain.version import (
    LENGTH,
    endpoint_version,
    project_version,
    require_version,
)
from cuepost.testing import START, Factory, SequentialIds, VirtualClock

LATER = START + timedelta(milliseconds=1)
IDS = SequentialIds()
ENDPOINT = Endpoint(
    IDS(START), IDS(START), "https://a.example/", ("a", "b"), "", True, START, START
)
CURRENT = StoredSecret(2, b"sealed", "whsec_…abcd", START)
PREVIOUS = StoredSecret(1, b"sealed", "whsec_…efgh", START, LATER)
KEYRING = Keyring(CURRENT)
PROJECT = Factory(IDS, VirtualClock()).project(IDS(START))
CHANGED: dict[str, Any] = {
    "account_id": IDS(START),
    "id": IDS(START),
    "name": "Teaser",
    "kind": ProjectKind.TRANSCRIPT,
    "origin": Origin.MCP,
    "status": ProjectStatus.FAILED,
    "stage": Stage.EXPORT,
    "access_expires_at": LATER,
    "created_at": LATER,
    "updated_at": LATER,
    "deleted_at": LATER,
    "exported_at": LATER,
}


@pytest.mark.parametrize(
    "changed",
    [
        replace(ENDPOINT, id=IDS(START)),
        replace(ENDPOINT, url="https://b.example/"),
        replace(ENDPOINT, events=("a",)),
        replace(ENDPOINT, description="Für später ☎"),
        replace(ENDPOINT, enabled=False),
        replace(ENDPOINT, updated_at=LATER),
    ],
)
def test_what_an_owner_changes_makes_another_version_of_an_endpoint(changed: Endpoint) -> None:
    assert endpoint_version(changed, KEYRING) != endpoint_version(ENDPOINT, KEYRING)


def test_the_health_of_an_endpoint_is_not_part_of_its_version() -> None:
    healthy = replace(ENDPOINT, last_delivered_at=LATER, failing_since=LATER)
    assert endpoint_version(healthy, KEYRING) == endpoint_version(ENDPOINT, KEYRING)


def test_every_step_of_a_rotation_makes_another_version() -> None:
    keyrings = [
        Keyring(replace(CURRENT, version=1, hint=PREVIOUS.hint)),
        Keyring(CURRENT, PREVIOUS),
        Keyring(CURRENT, PREVIOUS.expiring(LATER + timedelta(hours=1))),
        KEYRING,
        Keyring(replace(CURRENT, version=3)),
    ]
    assert len({endpoint_version(ENDPOINT, each) for each in keyrings}) == len(keyrings)


def test_the_sealed_secret_is_not_part_of_the_version() -> None:
    resealed = Keyring(replace(CURRENT, sealed=b"under another master key"))
    assert endpoint_version(ENDPOINT, resealed) == endpoint_version(ENDPOINT, KEYRING)


@pytest.mark.parametrize("name", [each.name for each in fields(Project)])
def test_every_field_of_a_project_is_part_of_its_version(name: str) -> None:
    changed = replace(PROJECT, **{name: CHANGED[name]})
    assert project_version(changed) != project_version(PROJECT)


def test_a_version_is_the_same_whenever_it_is_computed() -> None:
    assert project_version(replace(PROJECT)) == project_version(PROJECT)
    assert len(project_version(PROJECT)) == len(endpoint_version(ENDPOINT, KEYRING)) == LENGTH


@pytest.mark.parametrize("expected", [None, frozenset({"a"}), frozenset({"b", "a"})])
def test_an_expected_version_passes(expected: frozenset[str] | None) -> None:
    require_version(expected, "a")


@pytest.mark.parametrize("expected", [frozenset[str](), frozenset({"b"})])
def test_another_version_is_refused(expected: frozenset[str]) -> None:
    with pytest.raises(PreconditionFailed):
        require_version(expected, "a")
