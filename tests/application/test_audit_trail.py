"""Who did what, from where, when: one entry for each action, in the same transaction."""

from collections.abc import Awaitable
from dataclasses import replace
from pathlib import Path

import pytest

from cuepost.adapters.storage.records.guards import AuditRecords
from cuepost.application.manage_webhooks import EndpointChange
from cuepost.domain.access import Scope
from cuepost.domain.audit import Action, AuditEntry
from cuepost.domain.delivery import DeliveryStatus
from cuepost.domain.errors import EndpointDisabled
from cuepost.ports.records import Page
from cuepost.testing import START
from tests.application.world import OPERATOR, World

URL = "https://hooks.example.com/cue"


async def newest(world: World) -> tuple[Action, str | None, dict[str, str]]:
    entry = (await world.audit())[0]
    return entry.action, entry.subject, dict(entry.details)


async def test_an_entry_names_actor_door_address_subject_and_time(world: World) -> None:
    caller = replace(world.owner, address="192.0.2.7")
    webhook = (await world.endpoint(caller=caller)).view.endpoint
    [entry] = await world.audit()
    assert entry == AuditEntry(
        account_id=world.account.id,
        id=entry.id,
        action=Action.WEBHOOK_CREATED,
        actor="key:test",
        door="rest",
        address="192.0.2.7",
        subject=str(webhook.id),
        details={"url": URL},
        at=world.clock.now(),
    )


async def test_every_deed_upon_an_endpoint_is_written_down(world: World) -> None:
    webhooks, owner = world.service.webhooks, world.owner
    webhook_id = (await world.endpoint()).view.endpoint.id

    async def written(deed: Awaitable[object], action: Action, **details: str) -> None:
        world.clock.advance(1)
        await deed
        assert await newest(world) == (action, str(webhook_id), details)
        assert (await world.audit())[0].at == world.clock.now()

    def change(**wanted: object) -> Awaitable[object]:
        changed = EndpointChange(**wanted)  # type: ignore[arg-type]  # named by the test
        return world.do(webhooks.change, owner, webhook_id, changed)

    moved = "https://other.example.com/"
    await written(change(url=moved), Action.WEBHOOK_CHANGED, url=moved)
    await written(change(enabled=False), Action.WEBHOOK_DISABLED, url=moved)
    await written(change(enabled=True, url=URL), Action.WEBHOOK_ENABLED, url=URL)
    for deed, action in (
        (webhooks.rotate_secret, Action.SECRET_ROTATED),
        (webhooks.end_overlap, Action.OVERLAP_ENDED),
        (webhooks.send_test, Action.TEST_SENT),
    ):
        await written(world.do(deed, owner, webhook_id), action)
    await written(world.do(webhooks.delete, owner, webhook_id), Action.WEBHOOK_DELETED, url=URL)


async def test_sending_again_is_written_down(world: World) -> None:
    webhook_id = (await world.endpoint()).view.endpoint.id
    delivery, redeliver = await world.complete(), world.service.redeliver
    await world.end(delivery, DeliveryStatus.FAILED)
    await world.do(redeliver.one, world.owner, webhook_id, delivery.id)
    assert await newest(world) == (Action.DELIVERY_RETRIED, str(delivery.id), {})
    job = await world.do(
        redeliver.start_bulk,
        world.owner,
        webhook_id,
        since=START,
        until=None,
        statuses=(),
        dry_run=False,
    )
    assert await newest(world) == (Action.BULK_RETRY_STARTED, str(webhook_id), {})
    await world.do(redeliver.cancel_bulk, world.owner, webhook_id, job.id)
    assert await newest(world) == (Action.BULK_RETRY_CANCELLED, str(webhook_id), {})


async def test_listeners_that_come_and_go_are_written_down(world: World) -> None:
    listeners, named = world.service.listeners, {"name": "laptop"}
    made = await world.do(listeners.register, world.owner, "laptop", None)
    assert await newest(world) == (Action.LISTENER_CREATED, str(made.id), named)
    await world.do(listeners.delete, world.owner, made.id)
    assert await newest(world) == (Action.LISTENER_DELETED, str(made.id), named)


async def test_a_deleted_project_is_written_down(world: World) -> None:
    project = await world.project()
    await world.do(world.service.projects.delete, world.owner, project.id)
    assert await newest(world) == (Action.PROJECT_DELETED, str(project.id), {})


async def test_what_the_operator_does_is_written_down_in_the_account(world: World) -> None:
    access, account_id = world.service.access, world.account.id
    await world.do(access.set_webhooks, OPERATOR, account_id, False)
    assert await newest(world) == (Action.ACCESS_CLOSED, str(account_id), {})
    await world.do(access.set_webhooks, OPERATOR, account_id, True)
    assert await newest(world) == (Action.ACCESS_OPENED, str(account_id), {})
    scopes = [Scope.PROJECTS_READ]
    made = await world.do(access.create_key, OPERATOR, account_id, name="CI", scopes=scopes)
    assert await newest(world) == (Action.KEY_CREATED, str(made.key.id), {"name": "CI"})
    await world.do(access.revoke_key, OPERATOR, made.key.id)
    assert await newest(world) == (Action.KEY_REVOKED, str(made.key.id), {"name": "CI"})
    assert {(entry.actor, entry.door) for entry in await world.audit()} == {("operator", "cli")}
    other = await world.new_owner()
    assert [(entry.action, entry.subject) for entry in await world.audit(other)] == [
        (Action.ACCOUNT_CREATED, str(other.account_id))
    ]


async def test_a_refused_action_leaves_no_entry(world: World) -> None:
    webhook_id = (await world.endpoint()).view.endpoint.id
    await world.enable(webhook_id, False)
    before = await world.audit()
    with pytest.raises(EndpointDisabled):
        await world.do(world.service.webhooks.send_test, world.owner, webhook_id)
    assert await world.audit() == before


async def test_an_action_that_cannot_be_written_down_does_not_happen(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await world.dump()

    async def broken(*_: object) -> None:
        raise ValueError("no room in the trail")

    with monkeypatch.context() as patch:
        patch.setattr(AuditRecords, "add", broken)
        with pytest.raises(ValueError, match="no room in the trail"):
            await world.endpoint()
    assert await world.dump() == before


async def test_the_trail_is_paged_newest_first(world: World) -> None:
    for _ in range(3):
        await world.endpoint()
    trail = await world.audit()
    assert trail == sorted(trail, key=lambda entry: entry.id, reverse=True)
    behind = Page(limit=1, before=trail[0].id)
    assert await world.see(world.service.history.audit, world.owner, behind) == trail[1:2]


# What people do to sign in is shown in test_sign_in, and the others in the tests of their use case.
ELSEWHERE = (
    Action.LINK_MADE,
    Action.SIGNED_IN,
    Action.SIGN_IN_REFUSED,
    Action.SIGNED_OUT,
    Action.CREDENTIALS_CHANGED,
    Action.SECRET_REVEALED,
    Action.PROJECT_REHEARSED,
)


def test_every_kind_of_action_is_shown_in_this_file() -> None:
    written = Path(__file__).read_text()
    assert [action.name for action in Action if f"Action.{action.name}" not in written] == []
