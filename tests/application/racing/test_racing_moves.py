"""An account begins to move while others change it: what was done is in the file, no more."""

import json

from cuepost.domain.access import AccountState
from cuepost.domain.project import Origin, Project, ProjectKind, ProjectStatus
from cuepost.ports.store import Transaction
from tests.application.harness import OPERATOR, Harness
from tests.application.racing.instances import Instances, outcome


async def made(harness: Harness, name: str) -> None:
    async def create(transaction: Transaction) -> None:
        await harness.service.projects.create(
            transaction,
            harness.owner,
            name=name,
            kind=ProjectKind.VIDEO,
            origin=Origin.API,
            access_expires_at=None,
        )

    await harness.service.perform.change_by(harness.owner, create)


async def exported(harness: Harness) -> dict[str, list[dict[str, object]]]:
    lines: list[bytes] = []
    while await harness.service.moving.settle(harness.account.id):
        pass
    await harness.service.moving.export(harness.account.id, lines.append)
    found: dict[str, list[dict[str, object]]] = {}
    for line in map(json.loads, lines[1:-1]):
        rows = [dict(zip(line["columns"], row, strict=True)) for row in line["rows"]]
        found.setdefault(line["table"], []).extend(rows)
    return found


async def reported(harness: Harness, project: Project) -> None:
    [answer] = await harness.report(harness.milestone(project))
    assert answer.notified


async def test_whatever_was_done_is_in_the_file(instances: Instances) -> None:
    harness = instances.harness
    await harness.endpoint("project.completed")
    seen = set()
    for number in range(instances.rounds):
        first, second = await instances.projects(2)
        before = len(await harness.deliveries())
        names = [f"{number}-{each}" for each in range(4)]
        work = [
            outcome(reported(instances.each(1), first)),
            outcome(made(instances.each(2), names[0])),
            outcome(instances.each(0).service.moving.start(OPERATOR, harness.account.id)),
            outcome(made(instances.each(1), names[1])),
            outcome(reported(instances.each(2), second)),
            outcome(made(instances.each(0), names[2])),
        ]
        reported = await instances.race(*(work[number % 3 :] + work[: number % 3]))
        in_order = reported[len(reported) - number % 3 :] + reported[: len(reported) - number % 3]
        by_first, by_name, started, by_other, by_second, by_last = in_order
        assert started == "done"
        file = await exported(instances.each(number))
        there = {row["name"] for row in file["projects"]}
        for name, done in zip(names, (by_name, by_other, by_last), strict=False):
            assert (name in there) == (done == "done"), (name, done)
        completed = [
            row["id"] for row in file["projects"] if row["status"] == ProjectStatus.COMPLETED
        ]
        for project, done in ((first, by_first), (second, by_second)):
            assert (str(project.id) in completed) == (done == "done")
        booked = [by_first, by_second].count("done")
        assert len(file.get("queue", [])) == before + booked == len(await harness.deliveries())
        seen.update(in_order)
        assert (
            await harness.service.moving.abort(OPERATOR, harness.account.id) is AccountState.LEAVING
        )
    assert seen == {"done", "account_moving"}
