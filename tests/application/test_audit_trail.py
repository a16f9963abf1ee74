"""Who did what, from where, when: one entry for each action, in the same transaction."""

from collections.abc import Awaitable
from dataclasses import replace
from pathlib import Path

import pytest

from cuepost.adapters.storage.records.audit import AuditRecords
from cuepost.application.manage_webhooks import EndpointChange
from cuepost.application.search_audit import Trail
from cuepost.domain.access import Scope
from cuepost.domain.audit import Action, AuditEntry
from cuepost.domain.delivery import DeliveryStatus
from cuepost.domain.errors import EndpointDisabled
from cuepost.ports.records import AuditFilter, Page
from cuepost.testing import START
from tests.application.harness import OPERATOR, Harness

URL = "https://hooks.example.com/cue"


async def newest(harness: Harness) -> tuple[Action, str | None, dict[str, str]]:
    entry = (await harness.audit())[0]
    return entry.action, entry.subject, dict(entry.details)


async def test_an_entry_names_actor_interface_address_subject_and_time(harness: Harness) -> None:
    caller = replace(harness.owner, address="192.0.2.7")
    webhook = (await harness.endpoint(caller=caller)).view.endpoint
    [entry] = await harness.audit()
    assert entry == AuditEntry(
        account_id=harness.account.id,
        id=entry.id,
        action=Action.WEBHOOK_CREATED,
        actor="key:test",
        interface="rest",
        address="192.0.2.7",
        subject=str(webhook.id),
        details={"url": URL},
        at=harness.clock.now(),
    )


async def test_every_deed_upon_an_endpoint_is_written_down(harness: Harness) -> None:
    webhooks, owner = harness.service.webhooks, harness.owner
    webhook_id = (await harness.endpoint()).view.endpoint.id

    async def written(deed: Awaitable[object], action: Action, **details: str) -> None:
        harness.clock.advance(1)
        await deed
        assert await newest(harness) == (action, str(webhook_id), details)
        assert (await harness.audit())[0].at == harness.clock.now()

    def change(**wanted: object) -> Awaitable[object]:
        changed = EndpointChange(**wanted)  # type: ignore[arg-type]  # named by the test
        return harness.do(webhooks.change, owner, webhook_id, changed)

    moved = "https://other.example.com/"
    await written(change(url=moved), Action.WEBHOOK_CHANGED, url=moved)
    await written(change(enabled=False), Action.WEBHOOK_DISABLED, url=moved)
    await written(change(enabled=True, url=URL), Action.WEBHOOK_ENABLED, url=URL)
    for deed, action in (
        (webhooks.rotate_secret, Action.SECRET_ROTATED),
        (webhooks.end_overlap, Action.OVERLAP_ENDED),
        (webhooks.send_test, Action.TEST_SENT),
    ):
        await written(harness.do(deed, owner, webhook_id), action)
    await written(harness.do(webhooks.delete, owner, webhook_id), Action.WEBHOOK_DELETED, url=URL)


async def test_sending_again_is_written_down(harness: Harness) -> None:
    webhook_id = (await harness.endpoint()).view.endpoint.id
    delivery, redeliver = await harness.complete(), harness.service.redeliver
    await harness.end(delivery, DeliveryStatus.FAILED)
    await harness.do(redeliver.one, harness.owner, webhook_id, delivery.id)
    assert await newest(harness) == (Action.DELIVERY_RETRIED, str(delivery.id), {})
    job = await harness.do(
        redeliver.start_bulk,
        harness.owner,
        webhook_id,
        since=START,
        until=None,
        statuses=(),
        dry_run=False,
    )
    assert await newest(harness) == (Action.BULK_RETRY_STARTED, str(webhook_id), {})
    await harness.do(redeliver.cancel_bulk, harness.owner, webhook_id, job.id)
    assert await newest(harness) == (Action.BULK_RETRY_CANCELLED, str(webhook_id), {})


async def test_listeners_that_come_and_go_are_written_down(harness: Harness) -> None:
    listeners, named = harness.service.listeners, {"name": "laptop"}
    made = await harness.do(listeners.register, harness.owner, "laptop", None)
    assert await newest(harness) == (Action.LISTENER_CREATED, str(made.id), named)
    await harness.do(listeners.delete, harness.owner, made.id)
    assert await newest(harness) == (Action.LISTENER_DELETED, str(made.id), named)


async def test_a_deleted_project_is_written_down(harness: Harness) -> None:
    project = await harness.project()
    await harness.do(harness.service.projects.delete, harness.owner, project.id)
    assert await newest(harness) == (Action.PROJECT_DELETED, str(project.id), {})


async def test_what_the_operator_does_is_written_down_in_the_account(harness: Harness) -> None:
    access, account_id = harness.service.access, harness.account.id
    await harness.do(access.set_webhooks, OPERATOR, account_id, False)
    assert await newest(harness) == (Action.ACCESS_CLOSED, str(account_id), {})
    await harness.do(access.set_webhooks, OPERATOR, account_id, True)
    assert await newest(harness) == (Action.ACCESS_OPENED, str(account_id), {})
    scopes = [Scope.PROJECTS_READ]
    made = await harness.do(access.create_key, OPERATOR, account_id, name="CI", scopes=scopes)
    assert await newest(harness) == (Action.KEY_CREATED, str(made.key.id), {"name": "CI"})
    await harness.do(access.revoke_key, OPERATOR, made.key.id)
    assert await newest(harness) == (Action.KEY_REVOKED, str(made.key.id), {"name": "CI"})
    assert {(entry.actor, entry.interface) for entry in await harness.audit()} == {
        ("operator", "cli")
    }
    other = await harness.new_owner()
    assert [(entry.action, entry.subject) for entry in await harness.audit(other)] == [
        (Action.ACCOUNT_CREATED, str(other.account_id))
    ]


async def test_a_refused_action_leaves_no_entry(harness: Harness) -> None:
    webhook_id = (await harness.endpoint()).view.endpoint.id
    await harness.enable(webhook_id, False)
    before = await harness.audit()
    with pytest.raises(EndpointDisabled):
        await harness.do(harness.service.webhooks.send_test, harness.owner, webhook_id)
    assert await harness.audit() == before


async def test_an_action_that_cannot_be_written_down_does_not_happen(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await harness.dump()

    async def broken(*_: object) -> None:
        raise ValueError("no room in the trail")

    with monkeypatch.context() as patch:
        patch.setattr(AuditRecords, "add", broken)
        with pytest.raises(ValueError, match="no room in the trail"):
            await harness.endpoint()
    assert await harness.dump() == before


async def test_the_trail_is_paged_newest_first(harness: Harness) -> None:
    for _ in range(3):
        await harness.endpoint()
    trail = await harness.audit()
    assert trail == sorted(trail, key=lambda entry: entry.id, reverse=True)
    behind = Page(limit=1, before=trail[0].id)
    everything = AuditFilter()
    found = await harness.see(harness.service.history.audit, harness.owner, everything, behind)
    assert found == Trail(trail[1:2], trail[1].id)


# What people do to sign in is shown in test_sign_in, and the others in the tests of their use case.
ELSEWHERE = (
    Action.LINK_MADE,
    Action.SIGNED_IN,
    Action.SIGN_IN_REFUSED,
    Action.SIGNED_OUT,
    Action.CREDENTIALS_CHANGED,
    Action.IDENTITY_CONNECTED,
    Action.SECRET_REVEALED,
    Action.PROJECT_REHEARSED,
    Action.MOVE_STARTED,
    Action.MOVE_ABORTED,
    Action.MOVED,
    Action.ARRIVED,
    Action.MEMBER_INVITED,
    Action.MEMBER_JOINED,
    Action.MEMBER_ADDED,
    Action.MEMBER_CHANGED,
    Action.PORTAL_LINK_CREATED,
    Action.PORTAL_LINK_REVOKED,
    Action.PORTAL_SESSIONS_ENDED,
    Action.ROLE_CHANGED,
    Action.ALERTS_CHANGED,
    Action.MEMBER_REMOVED,
    Action.INVITATION_RESENT,
    Action.INVITATION_REVOKED,
    Action.ACCOUNT_CHANGED,
    Action.ERASURE_STARTED,
)


def test_every_kind_of_action_is_shown_in_this_file() -> None:
    written = Path(__file__).read_text()
    assert [action.name for action in Action if f"Action.{action.name}" not in written] == []
