"""Accounts as a product provisions them with an operator key."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from cuepost.application import perform
from cuepost.application.manage_accounts import AccountChange
from cuepost.domain.access import (
    ACCOUNT_SCOPES,
    OPERATOR_SCOPES,
    Account,
    AccountState,
    Caller,
    Interface,
    Scope,
)
from cuepost.domain.audit import Action
from cuepost.domain.delivery import CancelReason, DeliveryStatus
from cuepost.domain.errors import (
    AccountErasing,
    AccountMoved,
    ExternalIdTaken,
    Invalid,
    MissingScope,
    MoveRefused,
    NotFound,
    Unauthenticated,
    WrongKindOfKey,
)
from cuepost.ports.records import AccountSearch, Page, SearchedBy
from tests.application.harness import EVERYTHING, Harness

NOTHING = UUID(int=1)
KEY_ID = UUID(int=7)
HOST = Caller(
    Interface.REST, f"key:{KEY_ID}", None, OPERATOR_SCOPES, address="127.0.0.1", id=KEY_ID
)


async def created(harness: Harness, external_id: str | None = "cust_1", **more: Any) -> Account:
    create = harness.service.accounts.create
    return await harness.do(create, HOST, name="Studio", external_id=external_id, **more)


async def trail(harness: Harness, account_id: UUID) -> list[tuple[str, str, dict[str, str]]]:
    found = await harness.see(lambda t: t.audit.page(account_id, EVERYTHING))
    return [(each.action, each.actor, dict(each.details)) for each in found[::-1]]


@pytest.mark.parametrize("opened", [True, False, None])
async def test_an_account_is_created_as_asked_or_as_the_operator_has_set(
    harness: Harness, opened: bool | None
) -> None:
    account = await created(harness, webhooks_enabled=opened)
    now = harness.clock.now()
    assert account == Account(account.id, "Studio", bool(opened), now, external_id="cust_1")
    for reference in (account.id, "cust_1"):
        assert await harness.see(harness.service.accounts.get, HOST, reference) == account
    assert await trail(harness, account.id) == [
        (Action.ACCOUNT_CREATED, HOST.actor, {"name": "Studio"})
    ]


async def test_an_external_id_that_is_taken_names_the_account_that_has_it(
    harness: Harness,
) -> None:
    account = await created(harness)
    before = await harness.dump()
    with pytest.raises(ExternalIdTaken) as refused:
        await created(harness)
    assert refused.value.details == {"accountId": str(account.id)}
    assert await harness.dump() == before


async def test_of_two_requests_at_once_one_creates_the_account(harness: Harness) -> None:
    results = await asyncio.gather(*(created(harness) for _ in range(4)), return_exceptions=True)
    [account] = [each for each in results if isinstance(each, Account)]
    refused = [each for each in results if isinstance(each, ExternalIdTaken)]
    assert [each.details for each in refused] == [{"accountId": str(account.id)}] * 3


async def test_an_external_id_has_a_form(harness: Harness) -> None:
    with pytest.raises(Invalid):
        await created(harness, "a/b")


async def test_accounts_are_listed_and_searched(harness: Harness) -> None:
    accounts = [await created(harness, f"cust_{number}") for number in range(3)]
    page = await harness.see(harness.service.accounts.page, HOST, Page(2))
    assert page == accounts[:0:-1]
    search = AccountSearch(SearchedBy.EXTERNAL_ID, "cust_", 5)
    assert await harness.see(harness.service.accounts.page, HOST, search) == accounts


async def test_a_change_leaves_what_it_does_not_name(harness: Harness) -> None:
    account = await created(harness)
    change = harness.service.accounts.change
    renamed = await harness.do(change, HOST, "cust_1", AccountChange(name="Film"))
    assert renamed == replace(account, name="Film")
    moved = await harness.do(
        change, HOST, account.id, AccountChange(sets_external_id=True, external_id="cust_2")
    )
    assert moved == replace(renamed, external_id="cust_2")
    bare = await harness.do(change, HOST, "cust_2", AccountChange(sets_external_id=True))
    assert bare == replace(renamed, external_id=None)
    assert await harness.see(harness.service.accounts.get, HOST, account.id) == bare
    assert await trail(harness, account.id) == [
        (Action.ACCOUNT_CREATED, HOST.actor, {"name": "Studio"}),
        (Action.ACCOUNT_CHANGED, HOST.actor, {"name": "Film", "externalId": "cust_1"}),
        (Action.ACCOUNT_CHANGED, HOST.actor, {"name": "Film", "externalId": "cust_2"}),
        (Action.ACCOUNT_CHANGED, HOST.actor, {"name": "Film"}),
    ]


async def test_a_change_that_changes_nothing_leaves_no_trace(harness: Harness) -> None:
    account = await created(harness)
    before = await harness.dump()
    same = AccountChange(name="Studio", sets_external_id=True, external_id="cust_1")
    assert await harness.do(harness.service.accounts.change, HOST, "cust_1", same) == account
    assert await harness.dump() == before


async def test_a_change_takes_no_external_id_from_another_account(harness: Harness) -> None:
    account, _ = await created(harness), await created(harness, "cust_2")
    taken = AccountChange(sets_external_id=True, external_id="cust_1")
    with pytest.raises(ExternalIdTaken) as refused:
        await harness.do(harness.service.accounts.change, HOST, "cust_2", taken)
    assert refused.value.details == {"accountId": str(account.id)}


async def test_access_is_opened_and_closed_by_either_id(harness: Harness) -> None:
    account = await created(harness)
    set_webhooks = harness.service.accounts.set_webhooks
    opened = await harness.do(set_webhooks, HOST, "cust_1", True)
    assert opened == replace(account, webhooks_enabled=True)
    assert await harness.do(set_webhooks, HOST, account.id, False) == account
    actions = [action for action, *_ in await trail(harness, account.id)]
    assert actions == [Action.ACCOUNT_CREATED, Action.ACCESS_OPENED, Action.ACCESS_CLOSED]


async def test_keys_are_made_listed_and_revoked_for_one_account(harness: Harness) -> None:
    accounts = harness.service.accounts
    account, other = await created(harness), await created(harness, "cust_2")
    made = await harness.do(
        accounts.create_key, HOST, "cust_1", name="Server", scopes=ACCOUNT_SCOPES
    )
    assert made.key.account_id == account.id
    assert await harness.see(accounts.keys, HOST, account.id, EVERYTHING) == [made.key]
    assert await harness.see(accounts.keys, HOST, other.id, EVERYTHING) == []
    with pytest.raises(NotFound):
        await harness.do(accounts.revoke_key, HOST, "cust_2", made.key.id)
    revoked = await harness.do(accounts.revoke_key, HOST, "cust_1", made.key.id)
    assert revoked == replace(made.key, revoked_at=harness.clock.now())
    assert (await trail(harness, account.id))[1:] == [
        (Action.KEY_CREATED, HOST.actor, {"name": "Server"}),
        (Action.KEY_REVOKED, HOST.actor, {"name": "Server"}),
    ]


async def test_a_key_of_an_account_gets_no_scope_of_the_operator(harness: Harness) -> None:
    await created(harness)
    create_key = harness.service.accounts.create_key
    for scopes in (OPERATOR_SCOPES, {Scope.MILESTONES_REPORT}, set[Scope]()):
        with pytest.raises(Invalid) as refused:
            await harness.do(create_key, HOST, "cust_1", name="Server", scopes=scopes)
        assert [each.code for each in refused.value.errors] == ["scope_not_possible"]


async def test_a_key_cannot_have_expired_before_it_is_made(harness: Harness) -> None:
    await created(harness)
    with pytest.raises(Invalid) as refused:
        await harness.do(
            harness.service.accounts.create_key,
            HOST,
            "cust_1",
            name="Server",
            scopes=ACCOUNT_SCOPES,
            expires_at=harness.clock.now(),
        )
    assert [each.code for each in refused.value.errors] == ["expiry_in_the_past"]


async def test_erasing_shuts_the_account_at_once(harness: Harness) -> None:
    accounts = harness.service.accounts
    await harness.endpoint()
    await harness.report(harness.milestone(await harness.project()))
    made = await harness.do(
        accounts.create_key, HOST, harness.account.id, name="Server", scopes=ACCOUNT_SCOPES
    )
    now = harness.clock.now()
    erasing = await harness.do(accounts.erase, HOST, harness.account.id)
    assert erasing == replace(harness.account, webhooks_enabled=False, erasing_since=now)
    assert await harness.see(accounts.get, HOST, harness.account.id) == erasing
    assert [(each.status, each.reason) for each in await harness.deliveries()] == [
        (DeliveryStatus.CANCELLED, CancelReason.ACCESS_CLOSED)
    ]
    with pytest.raises(Unauthenticated):
        await harness.service.authenticate.caller(made.token, Interface.REST, None)
    assert await trail(harness, perform.OPERATOR) == [
        (Action.ERASURE_STARTED, HOST.actor, {"name": harness.account.name})
    ]
    harness.clock.advance(60)
    assert await harness.do(accounts.erase, HOST, harness.account.id) == erasing


async def test_an_account_that_is_being_erased_cannot_be_changed(harness: Harness) -> None:
    accounts, account = harness.service.accounts, await created(harness)
    await harness.do(accounts.erase, HOST, "cust_1")
    before = await harness.dump()
    changes: list[Callable[[], Awaitable[Any]]] = [
        lambda: harness.do(accounts.change, HOST, account.id, AccountChange(name="Film")),
        lambda: harness.do(accounts.set_webhooks, HOST, account.id, True),
        lambda: harness.do(
            accounts.create_key, HOST, account.id, name="Server", scopes=ACCOUNT_SCOPES
        ),
        lambda: harness.do(harness.service.sign_in.make_link, HOST, account.id),
        lambda: harness.service.maintenance.moving.start(HOST, account.id),
    ]
    for change in changes:
        with pytest.raises(AccountErasing):
            await change()
    with pytest.raises(ExternalIdTaken):
        await created(harness)
    assert await harness.dump() == before


async def test_erasing_ends_the_sessions_of_the_account(harness: Harness) -> None:
    sign_in = harness.service.sign_in
    link = await harness.do(sign_in.make_link, HOST, harness.account.id)
    session = await harness.do(sign_in.by_link, link.url.rpartition("/")[2], None)
    await harness.see(sign_in.signed_in, session.token, None)
    await harness.do(harness.service.accounts.erase, HOST, harness.account.id)
    with pytest.raises(NotFound):
        await harness.see(sign_in.signed_in, session.token, None)


async def test_an_account_that_has_moved_is_not_erased_here(harness: Harness) -> None:
    account = await created(harness)
    await harness.do(lambda t: t.moves.set_state(account.id, AccountState.MOVED))
    with pytest.raises(AccountMoved):
        await harness.do(harness.service.accounts.erase, HOST, account.id)


async def test_an_account_does_not_arrive_under_an_external_id_that_is_taken(
    harness: Harness,
) -> None:
    """The file of an account that has left, loaded where another account has its external id."""
    moving, account = harness.service.maintenance.moving, await created(harness)
    await moving.start(HOST, account.id)
    assert await moving.settle(account.id) == 0
    lines: list[bytes] = []
    await moving.export(account.id, lines.append)
    await moving.abort(HOST, account.id)
    while not await harness.service.maintenance.erasing.step(account.id):
        pass
    assert (await moving.load(lines)).external_id == "cust_1"
    await moving.abort(HOST, account.id)
    await created(harness)
    with pytest.raises(MoveRefused) as refused:
        await moving.load(lines)
    assert str(refused.value) == "Another account of this database has the external id cust_1."


@pytest.mark.parametrize("reference", [NOTHING, "nobody"])
async def test_an_unknown_account_is_not_found(harness: Harness, reference: UUID | str) -> None:
    accounts = harness.service.accounts
    calls: list[Callable[[], Awaitable[Any]]] = [
        lambda: harness.see(accounts.get, HOST, reference),
        lambda: harness.do(accounts.change, HOST, reference, AccountChange(name="Film")),
        lambda: harness.do(accounts.set_webhooks, HOST, reference, True),
        lambda: harness.do(accounts.erase, HOST, reference),
        lambda: harness.see(accounts.keys, HOST, reference, EVERYTHING),
        lambda: harness.do(
            accounts.create_key, HOST, reference, name="Server", scopes=ACCOUNT_SCOPES
        ),
        lambda: harness.do(accounts.revoke_key, HOST, reference, NOTHING),
    ]
    for call in calls:
        with pytest.raises(NotFound):
            await call()


def uses(harness: Harness) -> dict[str, tuple[Scope, Callable[[Caller], Awaitable[Any]]]]:
    accounts, account_id = harness.service.accounts, harness.account.id
    manage, read = Scope.ACCOUNTS_MANAGE, Scope.ACCOUNTS_READ
    return {
        "create": (manage, lambda by: harness.do(accounts.create, by, name="Studio")),
        "page": (read, lambda by: harness.see(accounts.page, by, EVERYTHING)),
        "get": (read, lambda by: harness.see(accounts.get, by, account_id)),
        "change": (
            manage,
            lambda by: harness.do(accounts.change, by, account_id, AccountChange(name="Film")),
        ),
        "set_webhooks": (
            manage,
            lambda by: harness.do(accounts.set_webhooks, by, account_id, True),
        ),
        "erase": (manage, lambda by: harness.do(accounts.erase, by, account_id)),
        "keys": (read, lambda by: harness.see(accounts.keys, by, account_id, EVERYTHING)),
        "create_key": (
            manage,
            lambda by: harness.do(
                accounts.create_key, by, account_id, name="Server", scopes=ACCOUNT_SCOPES
            ),
        ),
        "revoke_key": (
            manage,
            lambda by: harness.do(accounts.revoke_key, by, account_id, NOTHING),
        ),
    }


async def test_each_use_needs_its_scope(harness: Harness) -> None:
    before = await harness.dump()
    for scope, use in uses(harness).values():
        for other in OPERATOR_SCOPES - {scope, Scope.ACCOUNTS_MANAGE}:
            with pytest.raises(MissingScope):
                await use(replace(HOST, scopes=frozenset({other})))
        for stranger in (harness.owner, harness.pipeline):
            with pytest.raises(WrongKindOfKey):
                await use(stranger)
    assert await harness.dump() == before
    names = {name for name in dir(harness.service.accounts) if not name.startswith("_")}
    assert names - {"access", "opens_access"} == uses(harness).keys()


async def test_a_key_of_the_operator_that_has_expired_is_refused(harness: Harness) -> None:
    soon = harness.clock.now() + timedelta(minutes=1)
    made = await harness.do(
        harness.service.access.create_key,
        HOST,
        None,
        name="Host",
        scopes=OPERATOR_SCOPES,
        expires_at=soon,
    )
    await harness.service.authenticate.caller(made.token, Interface.REST, None)
    harness.clock.advance(61)
    with pytest.raises(Unauthenticated):
        await harness.service.authenticate.caller(made.token, Interface.REST, None)
