"""Signing in: once by a link, then by e-mail and password, and how it is limited and ended."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from argon2 import PasswordHasher

from cuepost.adapters.argon2_passwords import MOST_AT_WORK, Argon2Passwords
from cuepost.application.service import Ambient, assemble
from cuepost.application.sign_in import NewSession, SignIn, Visitor
from cuepost.application.sign_in_limits import SignInLimits
from cuepost.domain.access import ACCOUNT_SCOPES, Door
from cuepost.domain.errors import (
    EmailTaken,
    Invalid,
    NotFound,
    TooManySignIns,
    WrongCredentials,
)
from cuepost.ports.passwords import PasswordsBusy
from cuepost.testing import RepeatableEntropy
from tests.application.world import BASE_URL, OPERATOR, RULES, World
from tests.support.stepping_clock import SteppingClock

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


class Counting(Argon2Passwords):
    """Knows which passwords were looked at."""

    def __init__(self, looked_at: list[str]) -> None:
        super().__init__(CHEAP)
        self._looked_at = looked_at

    async def fits(self, password: str, known_hash: str | None) -> bool:
        self._looked_at.append(password)
        return await super().fits(password, known_hash)


class Busy(Argon2Passwords):
    async def fits(self, password: str, known_hash: str | None) -> bool:
        raise PasswordsBusy


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
    old = await member(people)
    other = await sign_in_of(people).by_password(EMAIL, PASSWORD, HERE)
    visitor = await visitor_of(people, old)
    new = await sign_in_of(people).change_credentials(visitor, EMAIL, PASSWORD, PASSWORD)
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
    first = await member(people)
    second = await sign_in_of(people).by_password(EMAIL, PASSWORD, HERE)
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


async def test_attempts_in_parallel_count_before_their_passwords_are_looked_at(
    people: World,
) -> None:
    await member(people)
    looked_at: list[str] = []
    sign_in = replace(sign_in_of(people), passwords=Counting(looked_at))
    tries = [sign_in.by_password(EMAIL, "wrong", f"192.0.2.{each}") for each in range(60)]
    refused = await asyncio.gather(*tries, return_exceptions=True)
    kinds = [type(each) for each in refused]
    assert (kinds.count(WrongCredentials), kinds.count(TooManySignIns)) == (10, 50)
    assert looked_at == ["wrong"] * 10


async def test_an_ipv6_client_is_counted_by_its_network(people: World) -> None:
    sign_in = sign_in_of(people)
    for number in range(30):
        with pytest.raises(WrongCredentials):
            await sign_in.by_password(f"{number}@example.com", "wrong", f"2001:db8::{number:x}")
    with pytest.raises(TooManySignIns):
        await sign_in.by_password("x@example.com", "wrong", "2001:db8::ffff:ffff:ffff:ffff")
    with pytest.raises(WrongCredentials):
        await sign_in.by_password("x@example.com", "wrong", "2001:db8:0:1::1")


async def test_what_was_right_or_not_looked_at_is_given_back(people: World) -> None:
    await member(people)
    for _ in range(40):
        await sign_in_of(people).by_password(EMAIL, PASSWORD, HERE)
    busy = replace(sign_in_of(people), passwords=Busy())
    for _ in range(40):
        with pytest.raises(PasswordsBusy):
            await busy.by_password(EMAIL, PASSWORD, HERE)
    await sign_in_of(people).by_password(EMAIL, PASSWORD, HERE)


async def test_guesses_of_the_current_password_are_limited_too(people: World) -> None:
    await member(people)
    session = await sign_in_of(people).by_password(EMAIL, PASSWORD, HERE)
    visitor = await visitor_of(people, session)
    change = sign_in_of(people).change_credentials
    for _ in range(10):
        with pytest.raises(WrongCredentials):
            await change(visitor, EMAIL, PASSWORD, "wrong")
    with pytest.raises(TooManySignIns):
        await change(visitor, EMAIL, PASSWORD, PASSWORD)


async def test_a_clock_that_is_set_back_locks_nobody_out_for_longer(people: World) -> None:
    await member(people)
    for _ in range(10):
        with pytest.raises(WrongCredentials):
            await sign_in_of(people).by_password(EMAIL, "wrong", HERE)
    set_back = SteppingClock(people.clock.now() - timedelta(days=1))
    limits = SignInLimits(people.service.perform, set_back)
    await replace(sign_in_of(people), limits=limits).by_password(EMAIL, PASSWORD, HERE)


async def test_counts_whose_window_has_ended_leave_the_store(people: World) -> None:
    for number in range(15):
        with pytest.raises(WrongCredentials):
            await sign_in_of(people).by_password(f"{number}@example.com", "wrong", HERE)
    people.clock.advance(minutes=15)
    for number in range(2):
        with pytest.raises(WrongCredentials):
            await sign_in_of(people).by_password(f"later{number}@example.com", "wrong", HERE)
    assert len((await people.dump())["sign_in_attempts"]) == 3


async def test_using_a_link_ends_every_other_link_and_session(people: World) -> None:
    before, tokens = await member(people), [await link_token(people) for _ in range(3)]
    session = await people.do(sign_in_of(people).by_link, tokens[1], HERE)
    for token in tokens:
        with pytest.raises(NotFound):
            await people.do(sign_in_of(people).by_link, token, HERE)
    with pytest.raises(NotFound):
        await visitor_of(people, before)
    assert (await visitor_of(people, session)).user.email == EMAIL


async def test_an_older_link_is_over_after_a_change_of_the_password(people: World) -> None:
    visitor, token = await visitor_of(people, await member(people)), await link_token(people)
    await sign_in_of(people).change_credentials(visitor, EMAIL, "another long one", PASSWORD)
    with pytest.raises(NotFound):
        await people.do(sign_in_of(people).by_link, token, HERE)


async def test_links_of_others_go_on_working(people: World) -> None:
    stranger = await people.new_owner()
    made = await people.do(sign_in_of(people).make_link, OPERATOR, stranger.account)
    await member(people)
    await people.do(sign_in_of(people).by_link, made.url.removeprefix(PREFIX), HERE)


async def test_a_link_may_set_a_new_password_for_an_hour(people: World) -> None:
    await member(people)
    visitor = await visitor_of(people, await session_by_link(people))
    await sign_in_of(people).change_credentials(visitor, EMAIL, "a forgotten one no more", "")
    late = await visitor_of(people, await session_by_link(people))
    people.clock.advance(hours=1)
    with pytest.raises(WrongCredentials):
        await sign_in_of(people).change_credentials(late, EMAIL, PASSWORD, "")
    await sign_in_of(people).by_password(EMAIL, "a forgotten one no more", HERE)


async def test_the_queue_of_passwords_is_bounded() -> None:
    passwords = Argon2Passwords(CHEAP)
    tries = [passwords.fits("wrong", None) for _ in range(MOST_AT_WORK + 5)]
    ended = await asyncio.gather(*tries, return_exceptions=True)
    assert [type(each) for each in ended] == [bool] * MOST_AT_WORK + [PasswordsBusy] * 5
    assert await passwords.fits("right", await passwords.hashed("right"))


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
