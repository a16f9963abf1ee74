"""Users, sessions, links and reveals as stores keep them; the test inbox and its newest mail."""

from dataclasses import replace
from datetime import timedelta

import pytest

from cuepost.domain.inbox import InboxAnswer
from cuepost.ports.records import Page
from cuepost.ports.retention import Expiring
from tests.support.records import Records
from tests.support.store_rows import AnyStore


async def test_what_is_stored_of_people_is_found_again_as_it_was(
    store: AnyStore, records: Records
) -> None:
    user = records.user(records.id())
    session, link = records.session(user), records.sign_in_link(user)
    async with store.transaction() as transaction:
        await transaction.users.add(user)
        await transaction.sessions.add(session)
        await transaction.sign_in_links.add(link)
    async with store.snapshot() as transaction:
        assert await transaction.users.get(user.account_id, user.id) == user
        assert await transaction.users.by_email(user.email or "") == user
        assert await transaction.users.owners(user.account_id) == [user]
        assert await transaction.sessions.find(session.digest) == session
        assert await transaction.sign_in_links.find(link.digest) == link
        assert await transaction.sessions.find(b"other") is None
        assert await transaction.sign_in_links.find(b"other") is None


async def test_a_user_is_found_by_the_identity_of_a_provider_in_the_account(
    store: AnyStore, records: Records
) -> None:
    user, other = records.user(records.id()), records.user(records.id())
    issuer = "https://id.example.com"
    connected = replace(user, oidc_issuer=issuer, oidc_subject="ada-7")
    elsewhere = replace(other, email=None, oidc_issuer=issuer, oidc_subject="ada-7")
    async with store.transaction() as transaction:
        await transaction.users.add(user)
        await transaction.users.add(elsewhere)
        find = transaction.users.by_identity
        assert await find(user.account_id, issuer, "ada-7") is None
        await transaction.users.save_identity(connected)
        assert await find(user.account_id, issuer, "ada-7") == connected
        assert await find(other.account_id, issuer, "ada-7") == elsewhere
        assert await find(user.account_id, issuer, "ada-8") is None
        assert await find(user.account_id, "https://other.example", "ada-7") is None


async def test_a_session_ends_alone_or_with_all_of_its_user(
    store: AnyStore, records: Records
) -> None:
    user = records.user(records.id())
    made = [records.session(user) for _ in range(3)]
    async with store.transaction() as transaction:
        for session in made:
            await transaction.sessions.add(session)
        await transaction.sessions.end(user.account_id, made[0].id)
        left = [await transaction.sessions.find(session.digest) for session in made]
        assert left == [None, *made[1:]]
        await transaction.sessions.end_of_user(user.account_id, user.id)
        assert await transaction.sessions.find(made[1].digest) is None


async def test_a_link_and_a_reveal_can_be_taken_once(store: AnyStore, records: Records) -> None:
    user = records.user(records.id())
    link = records.sign_in_link(user)
    reveal = records.secret_reveal(records.endpoint(user.account_id))
    async with store.transaction() as transaction:
        await transaction.sign_in_links.add(link)
        await transaction.secret_reveals.add(reveal)
    taken = []
    for _ in range(2):
        async with store.transaction() as transaction:
            taken.append(await transaction.sign_in_links.take(link.account_id, link.id))
            taken.append(await transaction.secret_reveals.take(reveal.account_id, reveal.id))
    assert taken == [True, True, False, False]


async def test_a_reveal_is_not_found_any_more_once_its_time_is_over(
    store: AnyStore, records: Records
) -> None:
    reveal = records.secret_reveal(records.endpoint(records.id()))
    async with store.transaction() as transaction:
        await transaction.secret_reveals.add(reveal)
        just_before = reveal.expires_at - timedelta(milliseconds=1)
        find = transaction.secret_reveals.find
        assert await find(reveal.account_id, reveal.digest, just_before) == reveal
        assert await find(reveal.account_id, reveal.digest, reveal.expires_at) is None


async def test_an_account_has_one_inbox_whoever_asks_first(
    store: AnyStore, records: Records
) -> None:
    inbox = records.inbox(records.id())
    async with store.transaction() as transaction:
        await transaction.inboxes.add(inbox)
        await transaction.inboxes.add(records.inbox(inbox.account_id))
        assert await transaction.inboxes.get(inbox.account_id) == inbox
        await transaction.inboxes.set_answer(inbox.account_id, InboxAnswer.CLOSE)
        found = await transaction.inboxes.by_token(inbox.token)
    assert found is not None
    assert found.answer is InboxAnswer.CLOSE


async def test_an_inbox_keeps_its_newest_messages_and_no_more(
    store: AnyStore, records: Records
) -> None:
    account_id = records.id()
    other = records.inbox_message(records.id())
    made = [records.inbox_message(account_id) for _ in range(5)]
    async with store.transaction() as transaction:
        await transaction.inboxes.keep(other, 3)
        for message in made:
            await transaction.inboxes.keep(message, 3)
        assert await transaction.inboxes.messages(account_id, Page(10)) == made[:1:-1]
        assert await transaction.inboxes.messages(account_id, Page(1)) == [made[-1]]
        await transaction.inboxes.clear(account_id)
        assert await transaction.inboxes.messages(account_id, Page(10)) == []
        assert await transaction.inboxes.messages(other.account_id, Page(10)) == [other]


@pytest.mark.parametrize(
    "what",
    [
        Expiring.SESSIONS,
        Expiring.SIGN_IN_LINKS,
        Expiring.INVITATIONS,
        Expiring.PORTAL_LINKS,
        Expiring.SECRET_REVEALS,
        Expiring.INBOX_MESSAGES,
    ],
)
async def test_what_is_over_is_forgotten(store: AnyStore, records: Records, what: Expiring) -> None:
    user = records.user(records.id())
    async with store.transaction() as transaction:
        await transaction.sessions.add(records.session(user))
        await transaction.sign_in_links.add(records.sign_in_link(user))
        await transaction.invitations.add(records.invitation(user.account_id))
        await transaction.portal_links.add(records.portal_link(user))
        endpoint = records.endpoint(user.account_id)
        await transaction.secret_reveals.add(records.secret_reveal(endpoint))
        await transaction.inboxes.keep(records.inbox_message(user.account_id), 9)
    now = records.clock.now()
    for instant, gone in ((now, False), (now + timedelta(days=15), True)):
        async with store.transaction() as transaction:
            assert await transaction.retention.any_before(what, instant) is gone
            await transaction.retention.delete_before(what, instant, 10)
    async with store.snapshot() as transaction:
        assert not await transaction.retention.any_before(what, now + timedelta(days=15))
