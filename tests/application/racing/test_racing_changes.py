"""Several processes change one thing at once, all of them knowing the same version of it."""

from collections import Counter

from cuepost.application.manage_projects import ProjectChange
from cuepost.application.manage_webhooks import EndpointChange
from cuepost.domain.errors import PreconditionFailed
from cuepost.domain.version import project_version
from tests.application.racing.instances import Instances, outcome

ONE_OF_SIX = {"done": 1, PreconditionFailed.code: 5}


async def test_one_version_of_an_endpoint_is_changed_once(instances: Instances) -> None:
    harness = instances.harness
    made = (await harness.endpoint()).view
    expected = frozenset({made.version})

    async def change(place: int) -> None:
        by, wanted = instances.each(place), EndpointChange(description=f"change {place}")
        change = by.service.webhooks.change
        await by.do(change, harness.owner, made.endpoint.id, wanted, expected)

    outcomes = await instances.race(*(outcome(change(place)) for place in range(6)))
    assert Counter(outcomes) == ONE_OF_SIX


async def test_one_version_of_an_endpoint_is_rotated_or_changed(instances: Instances) -> None:
    harness = instances.harness
    made = (await harness.endpoint()).view
    webhook_id, expected = made.endpoint.id, frozenset({made.version})

    async def act(place: int) -> None:
        by = instances.each(place)
        webhooks, wanted = by.service.webhooks, EndpointChange(enabled=False)
        if place % 3:
            await by.do(webhooks.change, harness.owner, webhook_id, wanted, expected)
        else:
            await by.do(webhooks.rotate_secret, harness.owner, webhook_id, expected)

    outcomes = await instances.race(*(outcome(act(place)) for place in range(6)))
    assert Counter(outcomes) == ONE_OF_SIX


async def test_one_version_of_a_project_is_changed_once(instances: Instances) -> None:
    harness = instances.harness
    [project] = await instances.projects(1)
    expected = frozenset({project_version(project)})

    async def change(place: int) -> None:
        by, wanted = instances.each(place), ProjectChange(name=f"change {place}")
        await by.do(by.service.projects.change, harness.owner, project.id, wanted, expected)

    outcomes = await instances.race(*(outcome(change(place)) for place in range(6)))
    assert Counter(outcomes) == ONE_OF_SIX
