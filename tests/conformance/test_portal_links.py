"""Portal links and the sessions that they open, as both stores keep them."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from cuepost.ports.store import KeyTaken
from tests.support.records import Records
from tests.support.store_rows import AnyStore


async def test_a_link_is_kept_with_all_its_fields(store: AnyStore, records: Records) -> None:
    user = records.user(records.id())
    full, bare = records.portal_link(user), records.portal_link(user, return_url=None)
    async with store.transaction() as transaction:
        await transaction.portal_links.add(full)
        await transaction.portal_links.add(bare)
    async with store.snapshot() as transaction:
        links = transaction.portal_links
        assert await links.find(full.digest) == full
        assert await links.get(bare.account_id, bare.id) == bare
        assert await links.find(b"other") is None


async def test_of_two_at_once_one_takes_the_link(store: AnyStore, records: Records) -> None:
    link, now = records.portal_link(records.user(records.id())), records.clock.now()
    async with store.transaction() as transaction:
        await transaction.portal_links.add(link)

    async def take() -> bool:
        async with store.transaction() as transaction:
            return await transaction.portal_links.take(
                link.account_id, link.id, now, now + timedelta(hours=1)
            )

    assert sorted(await asyncio.gather(take(), take(), take())) == [False, False, True]
    async with store.snapshot() as transaction:
        found = await transaction.portal_links.get(link.account_id, link.id)
    assert found == replace(link, used_at=now, ends_at=now + timedelta(hours=1))


async def test_a_session_of_a_link_says_so_and_ends_with_it(
    store: AnyStore, records: Records
) -> None:
    user, now = records.user(records.id()), records.clock.now()
    link, other = records.portal_link(user), records.portal_link(user)
    opened = records.session(user, id=link.id)
    plain = records.session(user)
    async with store.transaction() as transaction:
        for each in (link, other):
            await transaction.portal_links.add(each)
        await transaction.portal_links.take(link.account_id, link.id, now, now)
        for session in (opened, plain):
            await transaction.sessions.add(session)
    async with store.transaction() as transaction:
        found = await transaction.sessions.find(opened.digest)
        assert found == replace(opened, by_portal=True)
        assert await transaction.sessions.find(plain.digest) == plain
        await transaction.portal_links.end(link.account_id, link.id)
    async with store.snapshot() as transaction:
        assert await transaction.sessions.find(opened.digest) is None
        assert await transaction.sessions.find(plain.digest) == plain
        assert await transaction.portal_links.find(link.digest) is None
        assert await transaction.portal_links.find(other.digest) == other


@pytest.mark.parametrize("of_member", [True, False])
async def test_all_links_of_a_member_or_of_an_account_end_with_their_sessions(
    store: AnyStore, records: Records, of_member: bool
) -> None:
    account_id = records.id()
    users = [records.user(account_id), records.user(account_id), records.user(records.id())]
    links = [records.portal_link(user) for user in users]
    sessions = [
        *[records.session(user, id=link.id) for user, link in zip(users, links, strict=True)],
        records.session(users[0]),
    ]
    async with store.transaction() as transaction:
        for link in links:
            await transaction.portal_links.add(link)
        for session in sessions:
            await transaction.sessions.add(session)
        await transaction.portal_links.end_all(account_id, users[0].id if of_member else None)
    async with store.snapshot() as transaction:
        left = [await transaction.portal_links.find(each.digest) for each in links]
        alive = [await transaction.sessions.find(each.digest) for each in sessions]
    kept = [False, of_member, True]
    assert [each is not None for each in left] == kept
    assert [each is not None for each in alive] == [*kept, True]


async def test_an_external_id_belongs_to_one_member_of_an_account(
    store: AnyStore, records: Records
) -> None:
    user = records.user(records.id(), external_id="user_7")
    elsewhere = records.user(records.id(), external_id="user_7")
    async with store.transaction() as transaction:
        await transaction.users.add(user)
        await transaction.users.add(elsewhere)
    for again in (records.user(user.account_id, external_id="user_7"),):
        with pytest.raises(KeyTaken):
            async with store.transaction() as transaction:
                await transaction.users.add(again)
    async with store.transaction() as transaction:
        users = transaction.users
        assert await users.by_external_id(user.account_id, "user_7") == user
        assert await users.by_external_id(user.account_id, "user_8") is None
        await users.set_external_id(user.account_id, user.id, None)
        await users.add(records.user(user.account_id, external_id=None))
    async with store.snapshot() as transaction:
        assert await transaction.users.by_external_id(user.account_id, "user_7") is None
        found = await transaction.users.by_external_id(elsewhere.account_id, "user_7")
        assert found == elsewhere
