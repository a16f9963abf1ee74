"""An account leaves one database and arrives in another; at most one of the two is live."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from cuepost.adapters.secret_box import AesGcmBox
from cuepost.application.perform import IdempotentCall
from cuepost.domain.access import ACCOUNT_SCOPES, AccountState, Interface, Scope
from cuepost.domain.audit import Action
from cuepost.domain.delivery import DeliveryStatus
from cuepost.domain.errors import AccountMoved, AccountMoving, MoveRefused, NotFound
from cuepost.domain.event import SilenceReason
from cuepost.domain.project import Origin, ProjectKind, ProjectStatus
from cuepost.ports.dispatch import Claim
from cuepost.ports.moves import Chunk
from cuepost.ports.store import Transaction
from cuepost.testing import RepeatableEntropy
from tests.application.harness import EVERYTHING, OPERATOR, Harness

Lines = list[bytes]


async def state_of(harness: Harness) -> AccountState:
    found = await harness.see(lambda transaction: transaction.accounts.get(harness.account.id))
    assert found is not None
    return found.state


async def exported(harness: Harness) -> Lines:
    moving, lines = harness.service.maintenance.moving, Lines()
    await moving.start(OPERATOR, harness.account.id)
    assert await moving.settle(harness.account.id) == 0
    await moving.export(harness.account.id, lines.append)
    return lines


async def claimed(harness: Harness) -> int:
    """By a worker of its own, which lives for ten seconds."""
    now = harness.clock.now()
    worker = harness.ids(now)
    wanted = Claim(worker=worker, room=10, room_of=lambda _: 10)

    async def claim(transaction: Transaction) -> int:
        await transaction.queue.register_worker(worker, now + timedelta(seconds=10))
        return len((await transaction.queue.claim(wanted, now)).assignments)

    return await harness.do(claim)


async def erased(harness: Harness) -> None:
    """As if the next import were into another database."""
    done = False
    while not done:
        done = await harness.do(lambda t: t.accounts.erase_some(harness.account.id, 1_000))


async def test_a_move_from_beginning_to_end(harness: Harness) -> None:
    moving, account_id = harness.service.maintenance.moving, harness.account.id
    await harness.endpoint("project.completed")
    project = await harness.project()
    milestone = harness.milestone(project)
    [reported] = await harness.report(milestone)
    before = await harness.deliveries()
    lines = await exported(harness)
    assert await harness.deliveries() == before, "what waits is shown as it was"
    code = await moving.finish(OPERATOR, account_id)
    while not await moving.forget_step(account_id):
        pass
    assert await state_of(harness) is AccountState.MOVED
    # It comes back to the same database, which knows only that it has moved.
    assert await moving.load(lines) == replace(harness.account, state=AccountState.LIVE)
    assert await state_of(harness) is AccountState.ARRIVING
    await moving.release(OPERATOR, account_id, f" {code.upper()}\n")
    assert await state_of(harness) is AccountState.LIVE
    assert await harness.deliveries() == before
    assert (
        await harness.see(harness.service.projects.get, harness.owner, project.id)
    ).id == project.id
    assert await harness.report(milestone) == [reported], "the first answer came along"
    actions = [entry.action for entry in await harness.audit()]
    assert actions[:2] == [Action.ARRIVED, Action.MOVE_STARTED]
    moved = await harness.see(lambda t: t.audit.page(UUID(int=0), EVERYTHING))
    assert [(entry.action, entry.subject) for entry in moved] == [(Action.MOVED, str(account_id))]


async def test_while_it_leaves_it_is_read_and_not_changed(harness: Harness) -> None:
    made = await harness.do(
        harness.service.access.create_key,
        OPERATOR,
        harness.account.id,
        name="CI",
        scopes=ACCOUNT_SCOPES,
    )
    project = await harness.project()
    link = await harness.do(harness.service.sign_in.make_link, OPERATOR, harness.account.id)
    await harness.service.maintenance.moving.start(OPERATOR, harness.account.id)
    caller = await harness.service.authenticate.caller(made.token, Interface.REST, None)
    assert await harness.see(harness.service.projects.get, caller, project.id) == project
    service, perform = harness.service, harness.service.perform
    changes: dict[str, Callable[[Any], Any]] = {
        "project": lambda t: service.projects.create(
            t,
            caller,
            name="Cut",
            kind=ProjectKind.VIDEO,
            origin=Origin.API,
            access_expires_at=None,
        ),
        "endpoint": lambda t: service.webhooks.create(t, caller, "https://a.example.com", (), ""),
        "listener": lambda t: service.listeners.register(t, caller, "name", None),
    }
    for name, change in changes.items():
        with pytest.raises(AccountMoving):
            await perform.change_by(caller, change)
        call = IdempotentCall(name, b"print")
        with pytest.raises(AccountMoving):
            await perform.once(caller, call, _bytes_of(change), _never)
    access, account_id = service.access, harness.account.id
    with pytest.raises(AccountMoving):
        await harness.do(access.set_webhooks, OPERATOR, account_id, False)
    with pytest.raises(AccountMoving):
        await harness.do(access.revoke_key, OPERATOR, made.key.id)
    with pytest.raises(AccountMoving):
        await harness.do(
            access.create_key, OPERATOR, account_id, name="", scopes=[Scope.PROJECTS_READ]
        )
    with pytest.raises(AccountMoving):
        await harness.do(service.sign_in.make_link, OPERATOR, account_id)
    with pytest.raises(AccountMoving):
        await harness.do(service.sign_in.by_link, link.url.rpartition("/")[2], None)
    # Nothing of that is remembered, once it is live again.
    await service.maintenance.moving.abort(OPERATOR, account_id)
    answer = await perform.once(
        caller, IdempotentCall("project", b"print"), _bytes_of(changes["project"]), _never
    )
    assert answer.content == b"done"


def _bytes_of(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    async def act(transaction: Any) -> bytes:
        await change(transaction)
        return b"done"

    return act


def _never(_: object) -> bytes:
    raise AssertionError


async def test_milestones_of_others_are_booked_and_its_own_are_to_be_repeated(
    harness: Harness,
) -> None:
    await harness.endpoint("project.completed")
    other = await harness.new_owner()
    mine, theirs = await harness.project(), await harness.project(caller=other)
    await harness.service.maintenance.moving.start(OPERATOR, harness.account.id)
    both = [harness.milestone(each) for each in (theirs, mine)]
    with pytest.raises(AccountMoving):
        await harness.report(*both)
    booked = await harness.stored(theirs)
    assert booked.status is ProjectStatus.COMPLETED
    await harness.service.maintenance.moving.abort(OPERATOR, harness.account.id)
    first, second = await harness.report(*both)
    assert first.accepted
    assert second.notified


async def test_one_that_has_moved_says_so(harness: Harness) -> None:
    made = await harness.do(
        harness.service.access.create_key,
        OPERATOR,
        harness.account.id,
        name="CI",
        scopes=ACCOUNT_SCOPES,
    )
    project = await harness.project(name="Secret plans")
    moving, account_id = harness.service.maintenance.moving, harness.account.id
    await exported(harness)
    code = await moving.finish(OPERATOR, account_id)
    while not await moving.forget_step(account_id):
        pass
    assert await moving.finish(OPERATOR, account_id) == code
    with pytest.raises(AccountMoved):
        await harness.service.authenticate.caller(made.token, Interface.REST, None)
    [reported] = await harness.report(harness.milestone(project))
    assert (reported.accepted, reported.reason) == (False, SilenceReason.ACCOUNT_MOVED)
    left = await harness.dump()
    assert {name for name, rows in left.items() if rows} <= {
        "accounts",
        "account_moves",
        "api_keys",
        "audit_entries",
        "projects",
    }
    assert "Secret plans" not in str(left)
    with pytest.raises(MoveRefused):
        await moving.abort(OPERATOR, account_id)
    assert await harness.see(harness.service.sign_in.needs_link, account_id) is False


async def test_what_is_with_a_worker_is_waited_for(harness: Harness) -> None:
    await harness.endpoint("project.completed")
    project = await harness.project()
    await harness.complete(project)
    moving, account_id = harness.service.maintenance.moving, harness.account.id
    assert await claimed(harness) == 1
    await moving.start(OPERATOR, account_id)
    assert await moving.settle(account_id) == 1
    with pytest.raises(MoveRefused):
        await moving.export(account_id, Lines().append)
    harness.clock.advance(60)
    # Its worker has died by then, so the delivery waits again, and is parked.
    assert await moving.settle(account_id) == 0
    assert await claimed(harness) == 0
    await moving.abort(OPERATOR, account_id)
    [delivery] = await harness.deliveries()
    assert delivery.status is DeliveryStatus.PENDING
    assert await claimed(harness) == 1


async def test_deleted_endpoints_are_not_moved(harness: Harness) -> None:
    made = await harness.endpoint("project.completed")
    project = await harness.project()
    await harness.complete(project)
    await harness.do(harness.service.webhooks.delete, harness.owner, made.view.endpoint.id)
    moving = harness.service.maintenance.moving
    await moving.start(OPERATOR, harness.account.id)
    while await moving.settle(harness.account.id):
        pass
    lines = Lines()
    await moving.export(harness.account.id, lines.append)
    assert b'"table":"endpoints"' not in b"".join(lines)


async def test_a_copy_is_released_by_its_code_alone_and_once_complete(harness: Harness) -> None:
    moving, account_id = harness.service.maintenance.moving, harness.account.id
    await harness.project()
    lines = await exported(harness)
    code = await moving.finish(OPERATOR, account_id)
    await erased(harness)
    with pytest.raises(MoveRefused, match="not complete"):
        await moving.load(lines[:-1])
    with pytest.raises(MoveRefused, match="not loaded completely"):
        await moving.release(OPERATOR, account_id, code)
    # Begun again, after whatever was there.
    await moving.load(lines)
    with pytest.raises(MoveRefused, match="not the code"):
        await moving.release(OPERATOR, account_id, "00" * 16)
    assert await state_of(harness) is AccountState.ARRIVING
    await moving.release(OPERATOR, account_id, code)
    await moving.release(OPERATOR, account_id, code)
    assert await state_of(harness) is AccountState.LIVE
    with pytest.raises(MoveRefused, match="already"):
        await moving.load(lines)


async def test_a_file_of_an_aborted_move_cannot_be_released(harness: Harness) -> None:
    moving, account_id = harness.service.maintenance.moving, harness.account.id
    old = await exported(harness)
    assert await moving.abort(OPERATOR, account_id) is AccountState.LEAVING
    assert await state_of(harness) is AccountState.LIVE
    await exported(harness)
    code = await moving.finish(OPERATOR, account_id)
    await erased(harness)
    await moving.load(old)
    with pytest.raises(MoveRefused, match="not the code"):
        await moving.release(OPERATOR, account_id, code)
    assert await moving.abort(OPERATOR, account_id) is AccountState.ARRIVING
    assert await harness.see(lambda t: t.accounts.get(account_id)) is None


async def test_of_two_imports_the_first_gives_way(harness: Harness) -> None:
    moving, account_id = harness.service.maintenance.moving, harness.account.id
    await harness.project()
    lines = await exported(harness)
    await moving.finish(OPERATOR, account_id)
    await erased(harness)
    more = iter(lines)

    def interrupted() -> Iterator[bytes]:
        yield next(more)
        yield next(more)
        raise InterruptedError

    with pytest.raises(InterruptedError):
        await moving.load(interrupted())
    first = await harness.see(lambda t: t.moves.get(account_id))
    assert first is not None
    assert first.run_id is not None
    await moving.load(lines)
    with pytest.raises(MoveRefused, match="Another import"):
        await moving._load_chunk(account_id, first.run_id, Chunk("inboxes", (), []))


DAMAGES: dict[str, tuple[Callable[[Lines], Lines], str]] = {
    "empty": (lambda lines: [], "damaged"),
    "no object": (lambda lines: [b"[]\n", *lines[1:]], "damaged"),
    "something else": (lambda lines: [b"{}\n", *lines[1:]], "not a file of"),
    "newer": (lambda lines: [_with(lines[0], version=2)], "Another version"),
    "no account": (lambda lines: [_with(lines[0], account={})], "damaged"),
    "another schema": (lambda lines: [_with(lines[0], revision="0001")], "schema 0001"),
    "another key": (lambda lines: [_with(lines[0], masterKeys=["00ff00ff"])], "key 00ff00ff"),
    "a line less": (lambda lines: lines[:2] + lines[3:], "damaged"),
    "more than the end": (lambda lines: [*lines, lines[-1]], "damaged"),
    "half a line": (lambda lines: [lines[0], b'{"table":"events"}\n'], "damaged"),
    "no such table": (
        lambda lines: [lines[0], b'{"table":"none","columns":[],"rows":[]}\n'],
        "columns of none",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_file_that_is_not_as_it_was_written_is_refused(
    sqlite_harness: Harness, damage: str
) -> None:
    harness, (change, why) = sqlite_harness, DAMAGES[damage]
    await harness.endpoint("project.completed")
    await harness.project()
    lines = await exported(harness)
    await erased(harness)
    with pytest.raises(MoveRefused, match=why):
        await harness.service.maintenance.moving.load(change(lines))


async def test_an_email_that_is_taken_there_is_said(sqlite_harness: Harness) -> None:
    harness = sqlite_harness
    other = await harness.new_owner()
    await harness.do(harness.service.sign_in.make_link, OPERATOR, harness.account.id)
    [user] = await harness.see(lambda t: t.users.owners(harness.account.id))
    named = user.with_credentials("a@example.com", "hash")
    await harness.do(lambda t: t.users.save_credentials(named))
    lines = await exported(harness)
    await erased(harness)
    theirs = replace(named, account_id=other.account, id=harness.ids(harness.clock.now()))
    await harness.do(lambda t: t.users.add(theirs))
    with pytest.raises(MoveRefused, match="same e-mail"):
        await harness.service.maintenance.moving.load(lines)


async def test_secrets_are_sealed_in_the_file(harness: Harness) -> None:
    made = await harness.endpoint()
    text = b"".join(await exported(harness)).decode()
    assert made.secret.reveal() not in text
    other = AesGcmBox([b"1" * 32], RepeatableEntropy("other"))
    stranger = replace(harness.service.maintenance.moving, box=other)
    await erased(harness)
    with pytest.raises(MoveRefused, match="master key"):
        await stranger.load(text.encode().splitlines(keepends=True))


async def test_only_what_moves_can_be_ended_or_released(harness: Harness) -> None:
    moving, account_id = harness.service.maintenance.moving, harness.account.id
    with pytest.raises(MoveRefused):
        await moving.finish(OPERATOR, account_id)
    with pytest.raises(MoveRefused):
        await moving.abort(OPERATOR, account_id)
    with pytest.raises(MoveRefused):
        await moving.forget_step(account_id)
    with pytest.raises(MoveRefused):
        await moving.export(account_id, Lines().append)
    await moving.start(OPERATOR, account_id)
    await moving.start(OPERATOR, account_id)
    with pytest.raises(MoveRefused, match="not loaded"):
        await moving.release(OPERATOR, account_id, "")
    with pytest.raises(NotFound):
        await moving.start(OPERATOR, UUID(int=5))


def _with(line: bytes, **changed: Any) -> bytes:
    return json.dumps(json.loads(line) | changed).encode() + b"\n"
