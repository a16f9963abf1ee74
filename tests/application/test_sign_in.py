"""Signing in: once by a link, then by e-mail and password, and how it is limited and ended."""

from dataclasses import replace
from datetime import timedelta

import pytest
from argon2 import PasswordHasher

from cuepost.adapters.argon2_passwords import Argon2Passwords
from cuepost.application.service import Ambient, assemble
from cuepost.application.sign_in import NewSession, SignIn, Visitor
from cuepost.domain.access import ACCOUNT_SCOPES, Door
from cuepost.domain.errors import (
    EmailTaken,
    Invalid,
    NotFound,
    TooManySignIns,
    WrongCredentials,
)
from cuepost.testing import RepeatableEntropy
from tests.application.world import BASE_URL, OPERATOR, RULES, World

EMAIL, PASSWORD = "ada@example.com", "correct horse battery"
HERE = "192.0.2.7"
PREFIX = f"{BASE_URL}/sign-in/"
CHEAP = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)


@pytest.fixture
def people(world: World) -> World:
    """The world, with passwords that are hashed for real but cheaply."""
    entropy = RepeatableEntropy("people")
    ambient = Ambient(world.clock, world.ids, entropy, world.box, Argon2Passwords(CHEAP))
    return replace(world, service=assemble(world.store, ambient, RULES))


def sign_in_of(world: World) -> SignIn:
    return world.service.sign_in


async def link_token(world: World) -> str:
    link = await world.do(sign_in_of(world).make_link, OPERATOR, world.account.id)
    assert link.url.startswith(PREFIX)
    assert link.expires_at == world.clock.now() + timedelta(hours=24)
    return link.url.removeprefix(PREFIX)


async def session_by_link(world: World) -> NewSession:
    return await world.do(sign_in_of(world).by_link, await link_token(world), HERE)


async def visitor_of(world: World, session: NewSession) -> Visitor:
    return await world.see(sign_in_of(world).visitor, session.token, HERE)


async def member(world: World) -> NewSession:
    """Somebody who has chosen e-mail and password."""
    visitor = await visitor_of(world, await session_by_link(world))
    return await sign_in_of(world).change_credentials(visitor, EMAIL, PASSWORD, "")


async def test_a_link_signs_in_once(people: World) -> None:
    token = await link_token(people)
    looked = await people.see(sign_in_of(people).link, token)
    session = await people.do(sign_in_of(people).by_link, token, HERE)
    assert looked.user_id == session.user.id
    visitor = await visitor_of(people, session)
    assert (visitor.account, visitor.user) == (people.account, session.user)
    assert visitor.caller.door is Door.PAGES
    assert visitor.caller.id == session.user.id
    assert visitor.caller.scopes == ACCOUNT_SCOPES
    assert visitor.caller.webhooks_enabled
    with pytest.raises(NotFound):
        await people.do(sign_in_of(people).by_link, token, HERE)


async def test_a_link_is_over_after_a_day(people: World) -> None:
    token = await link_token(people)
    people.clock.advance(hours=24)
    with pytest.raises(NotFound):
        await people.do(sign_in_of(people).by_link, token, HERE)


async def test_all_links_of_an_account_are_for_its_first_user(people: World) -> None:
    first, second = await session_by_link(people), await session_by_link(people)
    assert first.user == second.user
    assert first.token != second.token


async def test_links_are_needed_until_somebody_has_a_password(people: World) -> None:
    needs = sign_in_of(people).needs_link
    assert await people.see(needs, people.account.id)
    await member(people)
    assert not await people.see(needs, people.account.id)


async def test_email_and_password_sign_in_whatever_the_case_of_the_email(people: World) -> None:
    await member(people)
    session = await sign_in_of(people).by_password(" ADA@example.com ", PASSWORD, HERE)
    assert (await visitor_of(people, session)).user.email == EMAIL


@pytest.mark.parametrize(
    ("email", "password"), [(EMAIL, "wrong"), ("eve@example.com", PASSWORD), ("", "")]
)
async def test_what_does_not_belong_together_is_refused_alike(
    people: World, email: str, password: str
) -> None:
    await member(people)
    with pytest.raises(WrongCredentials) as caught:
        await sign_in_of(people).by_password(email, password, HERE)
    assert str(caught.value) == WrongCredentials.__doc__


async def test_new_credentials_end_every_session_but_the_new_one(people: World) -> None:
    old = await session_by_link(people)
    other = await session_by_link(people)
    visitor = await visitor_of(people, old)
    new = await sign_in_of(people).change_credentials(visitor, EMAIL, PASSWORD, "")
    for ended in (old, other):
        with pytest.raises(NotFound):
            await visitor_of(people, ended)
    assert (await visitor_of(people, new)).user.email == EMAIL


async def test_whoever_has_a_password_must_know_it_to_change_it(people: World) -> None:
    visitor = await visitor_of(people, await member(people))
    change = sign_in_of(people).change_credentials
    with pytest.raises(WrongCredentials):
        await change(visitor, EMAIL, "another long password", "wrong")
    await change(visitor, EMAIL, "another long password", PASSWORD)
    await sign_in_of(people).by_password(EMAIL, "another long password", HERE)


@pytest.mark.parametrize(
    ("email", "password", "field"),
    [("ada", PASSWORD, "email"), ("a b@c.d", PASSWORD, "email"), (EMAIL, "short", "password")],
)
async def test_bad_credentials_are_refused_by_field(
    people: World, email: str, password: str, field: str
) -> None:
    visitor = await visitor_of(people, await session_by_link(people))
    with pytest.raises(Invalid) as caught:
        await sign_in_of(people).change_credentials(visitor, email, password, "")
    assert [error.field for error in caught.value.errors] == [field]


async def test_an_email_belongs_to_one_person(people: World) -> None:
    await member(people)
    stranger = await people.new_owner()
    made = await people.do(sign_in_of(people).make_link, OPERATOR, stranger.account)
    session = await people.do(sign_in_of(people).by_link, made.url.removeprefix(PREFIX), HERE)
    visitor = await visitor_of(people, session)
    with pytest.raises(EmailTaken):
        await sign_in_of(people).change_credentials(visitor, EMAIL, PASSWORD, "")


async def test_a_session_ends_at_sign_out_and_after_two_weeks(people: World) -> None:
    first, second = await session_by_link(people), await session_by_link(people)
    await people.do(sign_in_of(people).sign_out, await visitor_of(people, first))
    with pytest.raises(NotFound):
        await visitor_of(people, first)
    people.clock.advance(days=14)
    with pytest.raises(NotFound):
        await visitor_of(people, second)


async def test_ten_failures_for_an_email_make_it_wait_a_quarter_of_an_hour(people: World) -> None:
    await member(people)
    sign_in = sign_in_of(people)
    for number in range(10):
        with pytest.raises(WrongCredentials):
            await sign_in.by_password(EMAIL, "wrong", f"192.0.2.{number}")
    with pytest.raises(TooManySignIns):
        await sign_in.by_password(EMAIL, PASSWORD, HERE)
    people.clock.advance(minutes=15)
    await sign_in.by_password(EMAIL, PASSWORD, HERE)


async def test_thirty_failures_from_an_address_make_it_wait_whoever_it_tries(
    people: World,
) -> None:
    await member(people)
    sign_in = sign_in_of(people)
    for number in range(30):
        with pytest.raises(WrongCredentials):
            await sign_in.by_password(f"{number}@example.com", "wrong", HERE)
    with pytest.raises(TooManySignIns):
        await sign_in.by_password(EMAIL, PASSWORD, HERE)
    await sign_in.by_password(EMAIL, PASSWORD, "192.0.2.8")


async def test_no_password_and_no_token_is_in_the_store_or_in_a_repr(people: World) -> None:
    session, token = await member(people), await link_token(people)
    visitor = await visitor_of(people, session)
    told = f"{await people.dump()} {session!r} {visitor!r}"
    for secret in (session.token, token, PASSWORD):
        assert secret not in told


async def test_what_people_do_about_signing_in_is_in_the_audit_trail(people: World) -> None:
    session = await member(people)
    with pytest.raises(WrongCredentials):
        await sign_in_of(people).by_password(EMAIL, "wrong", HERE)
    await people.do(sign_in_of(people).sign_out, await visitor_of(people, session))
    trail = [(entry.action, entry.address) for entry in await people.audit()]
    assert trail == [
        ("user.signed_out", HERE),
        ("user.sign_in_refused", HERE),
        ("user.credentials_changed", HERE),
        ("user.signed_in", HERE),
        ("user.sign_in_link_made", None),
    ]
