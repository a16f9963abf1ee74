"""Members: invited, given a role, removed; and that an account is never without an owner."""

import asyncio
from collections.abc import Awaitable
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest
from argon2 import PasswordHasher

from cuepost.adapters.argon2_passwords import Argon2Passwords
from cuepost.application.join_account import JoinAccount
from cuepost.application.service import SystemPorts, assemble
from cuepost.application.sign_in import NewSession, SignedIn
from cuepost.domain.access import AccountState, Caller, Interface, Role, Scope
from cuepost.domain.audit import Action
from cuepost.domain.errors import (
    AccountMoving,
    EmailTaken,
    Invalid,
    InvitationLimitReached,
    LastOwner,
    MissingScope,
    NotFound,
    Refused,
)
from cuepost.domain.invitation import MOST_INVITATIONS
from cuepost.domain.person import PasswordSignInOff
from cuepost.ports.records import Page
from cuepost.testing import RepeatableEntropy
from tests.application.harness import BASE_URL, OPERATOR, RULES, Harness

PASSWORD = "correct horse battery"
HERE = "192.0.2.7"
JOIN = f"{BASE_URL}/join/"
ALL = Page(100)
CHEAP = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)


@pytest.fixture
def people(harness: Harness) -> Harness:
    """The harness, with passwords that are hashed for real but cheaply."""
    entropy = RepeatableEntropy("people")
    system = SystemPorts(harness.clock, harness.ids, entropy, harness.box, Argon2Passwords(CHEAP))
    return replace(harness, service=assemble(harness.store, system, RULES))


async def invited(
    people: Harness, role: Role, email: str | None = None, caller: Caller | None = None
) -> str:
    """The token of the link."""
    made = await people.do(people.service.members.invite, caller or people.owner, role, email)
    assert made.url.startswith(JOIN)
    return made.url.removeprefix(JOIN)


async def joined(people: Harness, role: Role, email: str) -> SignedIn:
    token = await invited(people, role)
    session = await people.service.joining.accept(token, email, PASSWORD, HERE)
    return await signed_in(people, session)


async def signed_in(people: Harness, session: NewSession) -> SignedIn:
    return await people.see(people.service.sign_in.signed_in, session.token, HERE)


async def first_owner(people: Harness) -> SignedIn:
    sign_in = people.service.sign_in
    link = await people.do(sign_in.make_link, OPERATOR, people.account.id)
    token = link.url.removeprefix(f"{BASE_URL}/sign-in/")
    return await signed_in(people, await people.do(sign_in.by_link, token, HERE))


async def newest(people: Harness, count: int = 1) -> list[tuple[str, str | None, dict[str, str]]]:
    return [
        (each.action, each.actor_name, dict(each.details))
        for each in (await people.audit())[:count]
    ]


async def test_the_first_user_of_an_account_is_an_owner(people: Harness) -> None:
    owner = await first_owner(people)
    assert (owner.user.role, owner.caller.role) == (Role.OWNER, Role.OWNER)
    assert owner.caller.scopes == Role.OWNER.scopes


@pytest.mark.parametrize("role", Role)
async def test_the_invited_choose_a_password_and_are_signed_in_with_that_role(
    people: Harness, role: Role
) -> None:
    owner = await first_owner(people)
    member = await joined(people, role, " Ada@Example.com ")
    assert member.caller == Caller(
        interface=Interface.PAGES,
        actor=f"user:{member.user.id}",
        account_id=people.account.id,
        scopes=role.scopes,
        webhooks_enabled=True,
        address=HERE,
        id=member.user.id,
        name="ada@example.com",
        role=role,
    )
    again = await people.service.sign_in.by_password("ada@example.com", PASSWORD, HERE)
    assert again.user == member.user
    found = await people.see(people.service.members.page, people.owner, ALL)
    assert found == [member.user, owner.user]


async def test_the_audit_trail_names_the_members_and_the_keys(people: Harness) -> None:
    member = await joined(people, Role.OWNER, "ada@example.com")
    await people.do(people.service.members.invite, member.caller, Role.VIEWER, "b@example.com")
    assert await newest(people, 4) == [
        (Action.MEMBER_INVITED, "ada@example.com", {"email": "b@example.com", "role": "viewer"}),
        (Action.SIGNED_IN, "ada@example.com", {"by": "invitation"}),
        (Action.MEMBER_JOINED, "ada@example.com", {"role": "owner"}),
        (Action.MEMBER_INVITED, None, {"role": "owner"}),
    ]


async def test_a_removed_member_is_still_named_by_the_audit_trail(people: Harness) -> None:
    await first_owner(people)
    member = await joined(people, Role.VIEWER, "ada@example.com")
    await people.do(people.service.members.remove, people.owner, member.user.id)
    removed, signed, *_ = await newest(people, 2)
    assert removed == (Action.MEMBER_REMOVED, None, {"email": "ada@example.com", "role": "viewer"})
    assert signed[:2] == (Action.SIGNED_IN, "ada@example.com")


async def test_an_invitation_works_once(people: Harness) -> None:
    token = await invited(people, Role.VIEWER)
    await people.service.joining.accept(token, "ada@example.com", PASSWORD, HERE)
    with pytest.raises(NotFound, match="used or revoked"):
        await people.service.joining.accept(token, "bob@example.com", PASSWORD, HERE)


async def test_two_who_accept_an_invitation_at_once_do_not_both_become_members(
    people: Harness,
) -> None:
    token = await invited(people, Role.VIEWER)
    accept = people.service.joining.accept
    done = await asyncio.gather(
        *(accept(token, f"ada{each}@example.com", PASSWORD, HERE) for each in range(4)),
        return_exceptions=True,
    )
    assert sorted(type(each).__name__ for each in done) == ["NewSession", *["NotFound"] * 3]
    assert len(await people.see(people.service.members.page, people.owner, ALL)) == 1


async def test_an_invitation_can_be_looked_at_and_ends_after_a_week(people: Harness) -> None:
    token = await invited(people, Role.VIEWER, "ada@example.com")
    joining = people.service.joining
    found = await people.see(joining.look, token)
    assert (found.account, found.invitation.email) == (people.account, "ada@example.com")
    people.clock.advance(timedelta(days=7).total_seconds())
    with pytest.raises(NotFound):
        await people.see(joining.look, token)
    with pytest.raises(NotFound):
        await joining.accept(token, "", PASSWORD, HERE)
    assert await people.see(people.service.members.invitations, people.owner, ALL) == []


async def test_an_invitation_that_ends_while_the_password_is_hashed_admits_no_one(
    people: Harness,
) -> None:
    made = await people.do(people.service.members.invite, people.owner, Role.VIEWER, None)

    class Slow(Argon2Passwords):
        async def hashed(self, password: str) -> str:
            await people.do(people.service.members.revoke, people.owner, made.invitation.id)
            return await super().hashed(password)

    joining = JoinAccount(replace(people.service.sign_in, passwords=Slow(CHEAP)))
    with pytest.raises(NotFound):
        await joining.accept(made.url.removeprefix(JOIN), "ada@example.com", PASSWORD, HERE)
    assert await people.see(people.service.members.page, people.owner, ALL) == []


async def test_a_revoked_invitation_admits_no_one(people: Harness) -> None:
    members = people.service.members
    made = await people.do(members.invite, people.owner, Role.VIEWER, "ada@example.com")
    assert await people.see(members.invitations, people.owner, ALL) == [made.invitation]
    await people.do(members.revoke, people.owner, made.invitation.id)
    details = {"email": "ada@example.com", "role": "viewer"}
    assert await newest(people) == [(Action.INVITATION_REVOKED, None, details)]
    with pytest.raises(NotFound):
        await people.see(people.service.joining.look, made.url.removeprefix(JOIN))
    with pytest.raises(NotFound):
        await people.do(members.revoke, people.owner, made.invitation.id)


@pytest.mark.parametrize("email", ["ada@example.com", None])
async def test_an_invitation_that_is_sent_again_has_a_new_link_and_the_old_one_ends(
    people: Harness, email: str | None
) -> None:
    members = people.service.members
    first = await people.do(members.invite, people.owner, Role.DEVELOPER, email)
    people.clock.advance(timedelta(days=6).total_seconds())
    second = await people.do(members.resend, people.owner, first.invitation.id)
    now = people.clock.now()
    assert second.invitation == replace(
        first.invitation,
        id=second.invitation.id,
        digest=second.invitation.digest,
        created_at=now,
        expires_at=now + timedelta(days=7),
    )
    assert first.invitation.id != second.invitation.id
    details = ({"email": email} if email else {}) | {"role": "developer"}
    assert await newest(people) == [(Action.INVITATION_RESENT, None, details)]
    assert await people.see(members.invitations, people.owner, ALL) == [second.invitation]
    with pytest.raises(NotFound):
        await people.see(people.service.joining.look, first.url.removeprefix(JOIN))
    accept = people.service.joining.accept
    session = await accept(second.url.removeprefix(JOIN), "ada@example.com", PASSWORD, HERE)
    assert (session.user.email, session.user.role) == ("ada@example.com", Role.DEVELOPER)
    with pytest.raises(NotFound):
        await people.do(members.resend, people.owner, second.invitation.id)


async def test_only_an_open_invitation_is_sent_again(people: Harness) -> None:
    members = people.service.members
    late = await people.do(members.invite, people.owner, Role.VIEWER, "bob@example.com")
    people.clock.advance(timedelta(days=7).total_seconds())
    revoked = await people.do(members.invite, people.owner, Role.VIEWER, None)
    await people.do(members.revoke, people.owner, revoked.invitation.id)
    for made in (late, revoked):
        with pytest.raises(NotFound):
            await people.do(members.resend, people.owner, made.invitation.id)


async def test_an_invitation_is_not_sent_again_to_a_member_or_without_passwords(
    people: Harness,
) -> None:
    members = people.service.members
    made = await people.do(members.invite, people.owner, Role.VIEWER, "ada@example.com")
    without = replace(members, allows_passwords=False)
    with pytest.raises(PasswordSignInOff):
        await people.do(without.resend, people.owner, made.invitation.id)
    await joined(people, Role.VIEWER, "ada@example.com")
    with pytest.raises(EmailTaken):
        await people.do(members.resend, people.owner, made.invitation.id)


async def test_an_account_with_the_most_open_invitations_sends_one_again(
    sqlite_harness: Harness,
) -> None:
    members = sqlite_harness.service.members
    for _ in range(MOST_INVITATIONS):
        made = await sqlite_harness.do(members.invite, sqlite_harness.owner, Role.VIEWER, None)
    await sqlite_harness.do(members.resend, sqlite_harness.owner, made.invitation.id)
    found = await sqlite_harness.see(members.invitations, sqlite_harness.owner, Page(500))
    assert len(found) == MOST_INVITATIONS


async def test_two_who_send_an_invitation_again_at_once_leave_one(people: Harness) -> None:
    members = people.service.members
    made = await people.do(members.invite, people.owner, Role.VIEWER, None)
    done = await asyncio.gather(
        *(people.do(members.resend, people.owner, made.invitation.id) for _ in range(3)),
        return_exceptions=True,
    )
    assert sorted(type(each).__name__ for each in done) == ["NewInvitation", *["NotFound"] * 2]
    assert len(await people.see(members.invitations, people.owner, ALL)) == 1


async def test_the_e_mail_of_an_invitation_cannot_be_exchanged(people: Harness) -> None:
    token = await invited(people, Role.VIEWER, "Ada@example.com")
    session = await people.service.joining.accept(token, "eve@example.com", PASSWORD, HERE)
    assert session.user.email == "ada@example.com"


async def test_a_new_invitation_to_an_e_mail_replaces_the_earlier_one(people: Harness) -> None:
    first = await invited(people, Role.OWNER, "ada@example.com")
    second = await invited(people, Role.VIEWER, "ada@example.com")
    with pytest.raises(NotFound):
        await people.see(people.service.joining.look, first)
    assert (await people.see(people.service.joining.look, second)).invitation.role is Role.VIEWER


async def test_an_e_mail_that_is_taken_is_refused(people: Harness) -> None:
    early = await invited(people, Role.VIEWER)
    await joined(people, Role.VIEWER, "ada@example.com")
    with pytest.raises(EmailTaken):
        await invited(people, Role.OWNER, "ada@example.com")
    with pytest.raises(EmailTaken):
        await people.service.joining.accept(early, "ADA@example.com", PASSWORD, HERE)
    # It was not used up by that.
    await people.service.joining.accept(early, "bob@example.com", PASSWORD, HERE)


@pytest.mark.parametrize(
    ("email", "password", "field"),
    [("ada", PASSWORD, "email"), ("ada@example.com", "short", "password")],
)
async def test_what_cannot_be_used_is_refused_and_the_invitation_stays(
    people: Harness, email: str, password: str, field: str
) -> None:
    token = await invited(people, Role.VIEWER)
    with pytest.raises(Invalid) as refused:
        await people.service.joining.accept(token, email, password, HERE)
    assert [error.field for error in refused.value.errors] == [field]
    await people.see(people.service.joining.look, token)


async def test_what_is_no_e_mail_is_not_invited(people: Harness) -> None:
    with pytest.raises(Invalid):
        await invited(people, Role.VIEWER, "ada")


async def test_an_account_has_a_limited_number_of_open_invitations(
    sqlite_harness: Harness,
) -> None:
    for _ in range(MOST_INVITATIONS):
        await invited(sqlite_harness, Role.VIEWER)
    with pytest.raises(InvitationLimitReached):
        await invited(sqlite_harness, Role.VIEWER)
    sqlite_harness.clock.advance(timedelta(days=7).total_seconds())
    await invited(sqlite_harness, Role.VIEWER)


async def test_removal_ends_sessions_and_links_at_once(people: Harness) -> None:
    await first_owner(people)
    member = await joined(people, Role.DEVELOPER, "ada@example.com")
    sign_in = people.service.sign_in
    session = await sign_in.by_password("ada@example.com", PASSWORD, HERE)
    link = await people.do(sign_in.make_link, OPERATOR, people.account.id, member.user.id)
    await people.do(people.service.members.remove, people.owner, member.user.id)
    with pytest.raises(NotFound):
        await signed_in(people, session)
    with pytest.raises(NotFound):
        await people.do(sign_in.by_link, link.url.removeprefix(f"{BASE_URL}/sign-in/"), HERE)
    with pytest.raises(Refused):
        await sign_in.by_password("ada@example.com", PASSWORD, HERE)
    with pytest.raises(NotFound):
        await people.do(people.service.members.remove, people.owner, member.user.id)


async def test_a_demoted_member_is_signed_out_and_a_promoted_one_is_not(people: Harness) -> None:
    await first_owner(people)
    member = await joined(people, Role.DEVELOPER, "ada@example.com")
    change, sign_in = people.service.members.change_role, people.service.sign_in
    session = await sign_in.by_password("ada@example.com", PASSWORD, HERE)
    changed = await people.do(change, people.owner, member.user.id, Role.OWNER)
    assert changed == replace(member.user, role=Role.OWNER)
    assert (await signed_in(people, session)).caller.scopes == Role.OWNER.scopes
    details = {"email": "ada@example.com", "role": "owner", "was": "developer"}
    assert await newest(people) == [(Action.ROLE_CHANGED, None, details)]
    await people.do(change, people.owner, member.user.id, Role.VIEWER)
    with pytest.raises(NotFound):
        await signed_in(people, session)
    later = await sign_in.by_password("ada@example.com", PASSWORD, HERE)
    assert (await signed_in(people, later)).caller.scopes == Role.VIEWER.scopes


async def test_a_role_that_stays_the_same_is_no_change(people: Harness) -> None:
    owner = await first_owner(people)
    before = await people.audit()
    change = people.service.members.change_role
    assert await people.do(change, people.owner, owner.user.id, Role.OWNER) == owner.user
    assert await people.audit() == before


async def test_the_last_owner_stays(people: Harness) -> None:
    owner = await first_owner(people)
    await joined(people, Role.DEVELOPER, "ada@example.com")
    members = people.service.members
    with pytest.raises(LastOwner):
        await people.do(members.remove, owner.caller, owner.user.id)
    with pytest.raises(LastOwner):
        await people.do(members.change_role, owner.caller, owner.user.id, Role.VIEWER)
    other = await joined(people, Role.OWNER, "bob@example.com")
    await people.do(members.remove, other.caller, owner.user.id)
    with pytest.raises(LastOwner):
        await people.do(members.remove, other.caller, other.user.id)


async def test_two_owners_who_remove_each_other_at_once_leave_one(people: Harness) -> None:
    one = await first_owner(people)
    two = await joined(people, Role.OWNER, "ada@example.com")
    remove = people.service.members.remove
    done = await asyncio.gather(
        people.do(remove, one.caller, two.user.id),
        people.do(remove, two.caller, one.user.id),
        return_exceptions=True,
    )
    assert sorted(type(each).__name__ for each in done) == ["LastOwner", "NoneType"]
    assert len(await people.see(lambda t: t.users.owners(people.account.id))) == 1


@pytest.mark.parametrize("role", [Role.DEVELOPER, Role.VIEWER])
async def test_only_owners_let_people_and_keys_in(people: Harness, role: Role) -> None:
    owner = await first_owner(people)
    member = (await joined(people, role, "ada@example.com")).caller
    members, keys = people.service.members, people.service.keys
    made = await people.do(members.invite, people.owner, Role.VIEWER, None)
    read = frozenset({Scope.PROJECTS_READ})
    key = await people.do(keys.create, owner.caller, name="k", scopes=read, expires_at=None)
    actions: list[Awaitable[object]] = [
        people.do(members.invite, member, Role.VIEWER, None),
        people.do(members.resend, member, made.invitation.id),
        people.do(members.revoke, member, made.invitation.id),
        people.do(members.change_role, member, member.id or UUID(int=0), Role.OWNER),
        people.do(members.remove, member, owner.user.id),
        people.do(keys.create, member, name="key", scopes=read, expires_at=None),
        people.do(keys.revoke, member, key.key.id),
    ]
    for action in actions:
        with pytest.raises(MissingScope, match=f"As a {role} you may not do that"):
            await action
    assert len(await people.see(members.page, member, ALL)) == 2
    assert await people.see(members.invitations, member, ALL) == [made.invitation]


async def test_without_the_scope_members_are_not_shown(people: Harness) -> None:
    blind = replace(people.owner, scopes=frozenset({Scope.WEBHOOKS_MANAGE}))
    for use_case in (people.service.members.page, people.service.members.invitations):
        with pytest.raises(MissingScope):
            await people.see(use_case, blind, ALL)


async def test_members_and_invitations_of_another_account_are_not_there(people: Harness) -> None:
    stranger = await people.new_owner()
    member = await joined(people, Role.VIEWER, "ada@example.com")
    members = people.service.members
    made = await people.do(members.invite, people.owner, Role.VIEWER, None)
    assert await people.see(members.page, stranger, ALL) == []
    assert await people.see(members.invitations, stranger, ALL) == []
    for action in (
        people.do(members.change_role, stranger, member.user.id, Role.OWNER),
        people.do(members.remove, stranger, member.user.id),
        people.do(members.resend, stranger, made.invitation.id),
        people.do(members.revoke, stranger, made.invitation.id),
        people.do(people.service.sign_in.make_link, OPERATOR, stranger.account, member.user.id),
    ):
        with pytest.raises(NotFound):
            await action


async def test_of_an_account_that_does_not_exist_there_is_nothing_to_manage(
    people: Harness,
) -> None:
    nowhere = replace(people.owner, account_id=UUID(int=7))
    with pytest.raises(NotFound):
        await people.do(people.service.members.invite, nowhere, Role.VIEWER, None)


async def test_while_an_account_moves_no_member_joins_it(people: Harness) -> None:
    token = await invited(people, Role.VIEWER)
    await people.do(lambda t: t.moves.set_state(people.account.id, AccountState.LEAVING))
    with pytest.raises(AccountMoving):
        await people.service.joining.accept(token, "ada@example.com", PASSWORD, HERE)
    with pytest.raises(AccountMoving):
        await invited(people, Role.VIEWER)


async def test_a_sign_in_link_is_for_the_member_it_names(people: Harness) -> None:
    await first_owner(people)
    member = await joined(people, Role.VIEWER, "ada@example.com")
    sign_in = people.service.sign_in
    link = await people.do(sign_in.make_link, OPERATOR, people.account.id, member.user.id)
    token = link.url.removeprefix(f"{BASE_URL}/sign-in/")
    session = await people.do(sign_in.by_link, token, HERE)
    assert (await signed_in(people, session)).user == member.user


async def test_an_account_without_an_owner_needs_a_link_which_makes_one(people: Harness) -> None:
    """A key can invite before a person has signed in."""
    await joined(people, Role.VIEWER, "ada@example.com")
    sign_in = people.service.sign_in
    assert await people.see(sign_in.needs_link, people.account.id)
    assert (await first_owner(people)).user.role is Role.OWNER


async def test_nothing_that_lets_someone_in_is_in_a_repr(people: Harness) -> None:
    made = await people.do(people.service.members.invite, people.owner, Role.VIEWER, None)
    assert repr(made) == f"NewInvitation({made.invitation.id})"
