"""Members with their roles, and invitations, as both stores keep them."""

import asyncio
from dataclasses import replace
from datetime import timedelta

from cuepost.domain.access import Role
from cuepost.ports.records import Page
from tests.support.records import Records
from tests.support.store_rows import AnyStore


async def test_members_are_paged_newest_first_with_their_roles(
    store: AnyStore, records: Records
) -> None:
    account_id = records.id()
    made = [records.user(account_id, role=role) for role in Role]
    async with store.transaction() as transaction:
        for user in made:
            await transaction.users.add(user)
        await transaction.users.add(records.user(records.id()))
    async with store.snapshot() as transaction:
        first = await transaction.users.page(account_id, Page(2))
        rest = await transaction.users.page(account_id, Page(2, first[-1].id))
        assert first + rest == made[::-1]
        assert await transaction.users.owners(account_id) == made[:1]


async def test_a_role_changes_alone_and_so_do_credentials(
    store: AnyStore, records: Records
) -> None:
    user, other = (records.user(account) for account in (records.id(), records.id()))
    async with store.transaction() as transaction:
        for each in (user, other):
            await transaction.users.add(each)
        await transaction.users.set_role(user.account_id, user.id, Role.VIEWER)
        # As a request does that has read the user before.
        await transaction.users.save_credentials(user.with_credentials("new@example.com", "new"))
    async with store.snapshot() as transaction:
        expected = replace(user.with_credentials("new@example.com", "new"), role=Role.VIEWER)
        assert await transaction.users.get(user.account_id, user.id) == expected
        assert await transaction.users.get(other.account_id, other.id) == other


async def test_a_removed_member_frees_the_e_mail(store: AnyStore, records: Records) -> None:
    user = records.user(records.id())
    again = records.user(records.id(), email=user.email)
    async with store.transaction() as transaction:
        await transaction.users.add(user)
        await transaction.users.remove(user.account_id, user.id)
    async with store.transaction() as transaction:
        await transaction.users.add(again)
        assert await transaction.users.by_email(user.email or "") == again


async def test_an_invitation_is_found_by_its_digest_until_it_is_taken(
    store: AnyStore, records: Records
) -> None:
    bound = records.invitation(records.id())
    open_one = records.invitation(bound.account_id, email=None)
    async with store.transaction() as transaction:
        await transaction.invitations.add(bound)
        await transaction.invitations.add(open_one)
    async with store.snapshot() as transaction:
        invitations = transaction.invitations
        assert await invitations.find(bound.digest) == bound
        assert await invitations.get(open_one.account_id, open_one.id) == open_one
        assert await invitations.find(b"other") is None
    taken = []
    for _ in range(2):
        async with store.transaction() as transaction:
            taken.append(await transaction.invitations.take(bound.account_id, bound.id))
    assert taken == [True, False]


async def test_two_who_take_an_invitation_at_once_do_not_both_get_it(
    store: AnyStore, records: Records
) -> None:
    invitation = records.invitation(records.id())
    async with store.transaction() as transaction:
        await transaction.invitations.add(invitation)

    async def take() -> bool:
        async with store.transaction() as transaction:
            return await transaction.invitations.take(invitation.account_id, invitation.id)

    assert sorted(await asyncio.gather(take(), take())) == [False, True]


async def test_only_live_invitations_are_listed_and_counted(
    store: AnyStore, records: Records
) -> None:
    account_id, now = records.id(), records.clock.now()
    old = records.invitation(account_id, expires_at=now)
    live = [records.invitation(account_id) for _ in range(3)]
    async with store.transaction() as transaction:
        for invitation in (old, *live):
            await transaction.invitations.add(invitation)
        invitations = transaction.invitations
        assert await invitations.count(account_id, now) == 3
        assert await invitations.count(account_id, now + timedelta(days=7)) == 0
        first = await invitations.page(account_id, Page(2), now)
        assert first == [live[2], live[1]]
        assert await invitations.page(account_id, Page(2, first[-1].id), now) == [live[0]]


async def test_all_invitations_to_an_e_mail_end_together(store: AnyStore, records: Records) -> None:
    account_id = records.id()
    to_ada = [records.invitation(account_id, email="ada@example.com") for _ in range(2)]
    others = [records.invitation(account_id, email=None), records.invitation(account_id)]
    elsewhere = records.invitation(records.id(), email="ada@example.com")
    async with store.transaction() as transaction:
        for invitation in (*to_ada, *others, elsewhere):
            await transaction.invitations.add(invitation)
        await transaction.invitations.end_of_email(account_id, "ada@example.com")
        found = await transaction.invitations.page(account_id, Page(9), records.clock.now())
        assert found == others[::-1]
        assert await transaction.invitations.find(elsewhere.digest) == elsewhere
