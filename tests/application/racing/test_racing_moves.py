"""An account is exported while others change it: what was done is in the file, and no more."""

import json
from collections.abc import Sequence
from typing import Any

from cuepost.domain.errors import AccountMoving
from cuepost.domain.project import Origin, Project, ProjectKind, ProjectStatus
from cuepost.ports.store import Transaction
from tests.application.harness import OPERATOR, Harness
from tests.application.racing.instances import Instances

MOST = 30
File = dict[str, list[dict[str, Any]]]


async def create_until_refused(harness: Harness, prefix: str) -> set[str]:
    """The names of all projects that were made."""
    done: set[str] = set()
    for number in range(MOST):
        name = f"{prefix} {number}"

        async def create(transaction: Transaction, name: str = name) -> None:
            await harness.service.projects.create(
                transaction,
                harness.owner,
                name=name,
                kind=ProjectKind.VIDEO,
                origin=Origin.API,
                access_expires_at=None,
            )

        try:
            await harness.service.perform.change_by(harness.owner, create)
        except AccountMoving:
            break
        done.add(name)
    return done


async def report_until_refused(harness: Harness, projects: Sequence[Project]) -> set[str]:
    """The ids of all projects whose milestone was accepted."""
    done: set[str] = set()
    for project in projects:
        try:
            [answer] = await harness.report(harness.milestone(project))
        except AccountMoving:
            break
        assert answer.notified
        done.add(str(project.id))
    return done


async def export(harness: Harness) -> File:
    moving, account_id = harness.service.maintenance.moving, harness.account.id
    await moving.start(OPERATOR, account_id)
    while await moving.settle(account_id):
        pass
    lines: list[bytes] = []
    await moving.export(account_id, lines.append)
    found: File = {}
    for line in map(json.loads, lines[1:-1]):
        rows = [dict(zip(line["columns"], row, strict=True)) for row in line["rows"]]
        found.setdefault(line["table"], []).extend(rows)
    return found


async def test_whatever_was_done_is_in_the_file(instances: Instances) -> None:
    harness, accepted, names = instances.harness, set[str](), set[str]()
    await harness.endpoint("project.completed")
    for number in range(instances.rounds):
        first, second = await instances.projects(MOST), await instances.projects(MOST)
        exporting = export(instances.each(number))
        changing = [
            create_until_refused(instances.each(1), f"{number} one"),
            create_until_refused(instances.each(2), f"{number} other"),
            report_until_refused(instances.each(0), first),
            report_until_refused(instances.each(1), second),
        ]
        file, *done = await instances.race(exporting, *changing)
        assert isinstance(file, dict)
        names |= {each for some in done[:2] for each in some}
        accepted |= {each for some in done[2:] for each in some}

        prefixes = tuple(f"{each} o" for each in range(instances.rounds))
        assert {each["name"] for each in file["projects"] if each["name"].startswith(prefixes)} == (
            names
        )
        assert {
            each["id"] for each in file["projects"] if each["status"] == ProjectStatus.COMPLETED
        } == accepted
        assert {each["project_id"] for each in file.get("queue", ())} == accepted
        await harness.service.maintenance.moving.abort(OPERATOR, harness.account.id)
