"""Signing in: once by a link, then by e-mail and password, and how it is limited and ended."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from argon2 import PasswordHasher

from cuepost.adapters.argon2_passwords import MOST_AT_WORK, Argon2Passwords
from cuepost.application.service import SystemPorts, assemble
from cuepost.application.sign_in import NewSession, SignedIn, SignIn
from cuepost.application.sign_in_limits import SignInLimits
from cuepost.domain.access import ACCOUNT_SCOPES, Interface
from cuepost.domain.errors import (
    EmailTaken,
    Invalid,
    NotFound,
    TooManySignIns,
    WrongCredentials,
)
from cuepost.ports.passwords import PasswordsBusy
from cuepost.testing import RepeatableEntropy
from tests.application.harness import BASE_URL, OPERATOR, RULES, Harness
from tests.support.stepping_clock import SteppingClock

EMAIL, PASSWORD = "ada@example.com", "correct horse battery"
HERE = "192.0.2.7"
PREFIX = f"{BASE_URL}/sign-in/"
CHEAP = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)


@pytest.fixture
def people(harness: Harness) -> Harness:
    """The harness, with passwords that are hashed for real but cheaply."""
    entropy = RepeatableEntropy("people")
    system = SystemPorts(harness.clock, harness.ids, entropy, harness.box, Argon2Passwords(CHEAP))
    return replace(harness, service=assemble(harness.store, system, RULES))


class Counting(Argon2Passwords):
    """Knows which passwords were looked at."""

    def __init__(self, looked_at: list[str]) -> None:
        super().__init__(CHEAP)
        self._looked_at = looked_at

    async def matches(self, password: str, known_hash: str | None) -> bool:
        self._looked_at.append(password)
        return await super().matches(password, known_hash)


class Busy(Argon2Passwords):
    async def matches(self, password: str, known_hash: str | None) -> bool:
        raise PasswordsBusy


def sign_in_of(harness: Harness) -> SignIn:
    return harness.service.sign_in


async def link_token(harness: Harness) -> str:
    link = await harness.do(sign_in_of(harness).make_link, OPERATOR, harness.account.id)
    assert link.url.startswith(PREFIX)
    assert link.expires_at == harness.clock.now() + timedelta(hours=24)
    return link.url.removeprefix(PREFIX)


async def session_by_link(harness: Harness) -> NewSession:
    return await harness.do(sign_in_of(harness).by_link, await link_token(harness), HERE)


async def signed_in_of(harness: Harness, session: NewSession) -> SignedIn:
    return await harness.see(sign_in_of(harness).signed_in, session.token, HERE)


async def member(harness: Harness) -> NewSession:
    """Someone who has chosen e-mail and password."""
    signed_in = await signed_in_of(harness, await session_by_link(harness))
    return await sign_in_of(harness).change_credentials(signed_in, EMAIL, PASSWORD, "")


async def test_a_link_signs_in_once(people: Harness) -> None:
    token = await link_token(people)
    looked = await people.see(sign_in_of(people).link, token)
    session = await people.do(sign_in_of(people).by_link, token, HERE)
    assert looked.user_id == session.user.id
    signed_in = await signed_in_of(people, session)
    assert (signed_in.account, signed_in.user) == (people.account, session.user)
    assert signed_in.caller.interface is Interface.PAGES
    assert signed_in.caller.id == session.user.id
    assert signed_in.caller.scopes == ACCOUNT_SCOPES
    assert signed_in.caller.webhooks_enabled
    with pytest.raises(NotFound):
        await people.do(sign_in_of(people).by_link, token, HERE)


async def test_a_link_is_over_after_a_day(people: Harness) -> None:
    token = await link_token(people)
    people.clock.advance(hours=24)
    with pytest.raises(NotFound):
        await people.do(sign_in_of(people).by_link, token, HERE)


async def test_all_links_of_an_account_are_for_its_first_user(people: Harness) -> None:
    first, second = await session_by_link(people), await session_by_link(people)
    assert first.user == second.user
    assert first.token != second.token


async def test_links_are_needed_until_someone_has_a_password(people: Harness) -> None:
    needs = sign_in_of(people).needs_link
    assert await people.see(needs, people.account.id)
    await member(people)
    assert not await people.see(needs, people.account.id)


async def test_email_and_password_sign_in_whatever_the_case_of_the_email(people: Harness) -> None:
    await member(people)
    session = await sign_in_of(people).by_password(" ADA@example.com ", PASSWORD, HERE)
    assert (await signed_in_of(people, session)).user.email == EMAIL


@pytest.mark.parametrize(
    ("email", "password"), [(EMAIL, "wrong"), ("eve@example.com", PASSWORD), ("", "")]
)
async def test_what_does_not_belong_together_is_refused_alike(
    people: Harness, email: str, password: str
) -> None:
    await member(people)
    with pytest.raises(WrongCredentials) as caught:
        await sign_in_of(people).by_password(email, password, HERE)
    assert str(caught.value) == WrongCredentials.__doc__


async def test_new_credentials_end_every_session_but_the_new_one(people: Harness) -> None:
    old = await member(people)
    other = await sign_in_of(people).by_password(EMAIL, PASSWORD, HERE)
    signed_in = await signed_in_of(people, old)
    new = await sign_in_of(people).change_credentials(signed_in, EMAIL, PASSWORD, PASSWORD)
    for ended in (old, other):
        with pytest.raises(NotFound):
            await signed_in_of(people, ended)
    assert (await signed_in_of(people, new)).user.email == EMAIL


async def test_whoever_has_a_password_must_know_it_to_change_it(people: Harness) -> None:
    signed_in = await signed_in_of(people, await member(people))
    change = sign_in_of(people).change_credentials
    with pytest.raises(WrongCredentials):
        await change(signed_in, EMAIL, "another long password", "wrong")
    await change(signed_in, EMAIL, "another long password", PASSWORD)
    await sign_in_of(people).by_password(EMAIL, "another long password", HERE)


@pytest.mark.parametrize(
    ("email", "password", "field"),
    [("ada", PASSWORD, "email"), ("a b@c.d", PASSWORD, "email"), (EMAIL, "short", "password")],
)
async def test_bad_credentials_are_refused_by_field(
    people: Harness, email: str, password: str, field: str
) -> None:
    signed_in = await signed_in_of(people, await session_by_link(people))
    with pytest.raises(Invalid) as caught:
        await sign_in_of(people).change_credentials(signed_in, email, password, "")
    assert [error.field for error in caught.value.errors] == [field]


async def test_an_email_belongs_to_one_person(people: Harness) -> None:
    await member(people)
    stranger = await people.new_owner()
    made = await people.do(sign_in_of(people).make_link, OPERATOR, stranger.account)
    session = await people.do(sign_in_of(people).by_link, made.url.removeprefix(PREFIX), HERE)
    signed_in = await signed_in_of(people, session)
    with pytest.raises(EmailTaken):
        await sign_in_of(people).change_credentials(signed_in, EMAIL, PASSWORD, "")


async def test_a_session_ends_at_sign_out_and_after_two_weeks(people: Harness) -> None:
    first = await member(people)
    second = await sign_in_of(people).by_password(EMAIL, PASSWORD, HERE)
    await people.do(sign_in_of(people).sign_out, await signed_in_of(people, first))
    with pytest.raises(NotFound):
        await signed_in_of(people, first)
    people.clock.advance(days=14)
    with pytest.raises(NotFound):
        await signed_in_of(people, second)


async def test_ten_failures_for_an_email_make_it_wait_a_quarter_of_an_hour(people: Harness) -> None:
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
    people: Harness,
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
    people: Harness,
) -> None:
    await member(people)
    looked_at: list[str] = []
    sign_in = replace(sign_in_of(people), passwords=Counting(looked_at))
    tries = [sign_in.by_password(EMAIL, "wrong", f"192.0.2.{each}") for each in range(60)]
    refused = await asyncio.gather(*tries, return_exceptions=True)
    kinds = [type(each) for each in refused]
    assert (kinds.count(WrongCredentials), kinds.count(TooManySignIns)) == (10, 50)
    assert looked_at == ["wrong"] * 10


async def test_an_ipv6_client_is_counted_by_its_network(people: Harness) -> None:
    sign_in = sign_in_of(people)
    for number in range(30):
        with pytest.raises(WrongCredentials):
            await sign_in.by_password(f"{number}@example.com", "wrong", f"2001:db8::{number:x}")
    with pytest.raises(TooManySignIns):
        await sign_in.by_password("x@example.com", "wrong", "2001:db8::ffff:ffff:ffff:ffff")
    with pytest.raises(WrongCredentials):
        await sign_in.by_password("x@example.com", "wrong", "2001:db8:0:1::1")


async def test_what_was_right_or_not_looked_at_is_given_back(people: Harness) -> None:
    await member(people)
    for _ in range(40):
        await sign_in_of(people).by_password(EMAIL, PASSWORD, HERE)
    busy = replace(sign_in_of(people), passwords=Busy())
    for _ in range(40):
        with pytest.raises(PasswordsBusy):
            await busy.by_password(EMAIL, PASSWORD, HERE)
    await sign_in_of(people).by_password(EMAIL, PASSWORD, HERE)


async def test_guesses_of_the_current_password_are_limited_too(people: Harness) -> None:
    await member(people)
    session = await sign_in_of(people).by_password(EMAIL, PASSWORD, HERE)
    signed_in = await signed_in_of(people, session)
    change = sign_in_of(people).change_credentials
    for _ in range(10):
        with pytest.raises(WrongCredentials):
            await change(signed_in, EMAIL, PASSWORD, "wrong")
    with pytest.raises(TooManySignIns):
        await change(signed_in, EMAIL, PASSWORD, PASSWORD)


async def test_a_clock_that_is_set_back_locks_no_one_out_for_longer(people: Harness) -> None:
    await member(people)
    for _ in range(10):
        with pytest.raises(WrongCredentials):
            await sign_in_of(people).by_password(EMAIL, "wrong", HERE)
    set_back = SteppingClock(people.clock.now() - timedelta(days=1))
    limits = SignInLimits(people.service.perform, set_back)
    await replace(sign_in_of(people), limits=limits).by_password(EMAIL, PASSWORD, HERE)


async def test_a_clock_that_is_a_little_behind_does_not_begin_to_count_again(
    people: Harness,
) -> None:
    """Two processes count the same attempts, and their clocks differ."""
    await member(people)
    behind = SteppingClock(people.clock.now() - timedelta(seconds=1))
    limits = [sign_in_of(people).limits, SignInLimits(people.service.perform, behind)]
    for number in range(10):
        process = replace(sign_in_of(people), limits=limits[number % 2])
        with pytest.raises(WrongCredentials):
            await process.by_password(EMAIL, "wrong", HERE)
    for each in limits:
        with pytest.raises(TooManySignIns):
            await replace(sign_in_of(people), limits=each).by_password(EMAIL, PASSWORD, HERE)
        assert await each.is_first_use("a link") is (each is limits[0])


async def test_counts_whose_window_has_ended_leave_the_store(people: Harness) -> None:
    for number in range(15):
        with pytest.raises(WrongCredentials):
            await sign_in_of(people).by_password(f"{number}@example.com", "wrong", HERE)
    people.clock.advance(minutes=15)
    for number in range(2):
        with pytest.raises(WrongCredentials):
            await sign_in_of(people).by_password(f"later{number}@example.com", "wrong", HERE)
    assert len((await people.dump())["sign_in_attempts"]) == 3


async def test_using_a_link_ends_every_other_link_and_session(people: Harness) -> None:
    before, tokens = await member(people), [await link_token(people) for _ in range(3)]
    session = await people.do(sign_in_of(people).by_link, tokens[1], HERE)
    for token in tokens:
        with pytest.raises(NotFound):
            await people.do(sign_in_of(people).by_link, token, HERE)
    with pytest.raises(NotFound):
        await signed_in_of(people, before)
    assert (await signed_in_of(people, session)).user.email == EMAIL


async def test_an_older_link_is_over_after_a_change_of_the_password(people: Harness) -> None:
    signed_in, token = await signed_in_of(people, await member(people)), await link_token(people)
    await sign_in_of(people).change_credentials(signed_in, EMAIL, "another long one", PASSWORD)
    with pytest.raises(NotFound):
        await people.do(sign_in_of(people).by_link, token, HERE)


async def test_links_of_others_go_on_working(people: Harness) -> None:
    stranger = await people.new_owner()
    made = await people.do(sign_in_of(people).make_link, OPERATOR, stranger.account)
    await member(people)
    await people.do(sign_in_of(people).by_link, made.url.removeprefix(PREFIX), HERE)


async def test_a_link_may_set_a_new_password_for_an_hour(people: Harness) -> None:
    await member(people)
    signed_in = await signed_in_of(people, await session_by_link(people))
    await sign_in_of(people).change_credentials(signed_in, EMAIL, "a forgotten one no more", "")
    late = await signed_in_of(people, await session_by_link(people))
    people.clock.advance(hours=1)
    with pytest.raises(WrongCredentials):
        await sign_in_of(people).change_credentials(late, EMAIL, PASSWORD, "")
    await sign_in_of(people).by_password(EMAIL, "a forgotten one no more", HERE)


async def test_the_queue_of_passwords_is_bounded() -> None:
    passwords = Argon2Passwords(CHEAP)
    tries = [passwords.matches("wrong", None) for _ in range(MOST_AT_WORK + 5)]
    ended = await asyncio.gather(*tries, return_exceptions=True)
    assert [type(each) for each in ended] == [bool] * MOST_AT_WORK + [PasswordsBusy] * 5
    assert await passwords.matches("right", await passwords.hashed("right"))


async def test_no_password_and_no_token_is_in_the_store_or_in_a_repr(people: Harness) -> None:
    session, token = await member(people), await link_token(people)
    signed_in = await signed_in_of(people, session)
    reported = f"{await people.dump()} {session!r} {signed_in!r}"
    for secret in (session.token, token, PASSWORD):
        assert secret not in reported


async def test_what_people_do_about_signing_in_is_in_the_audit_trail(people: Harness) -> None:
    session = await member(people)
    with pytest.raises(WrongCredentials):
        await sign_in_of(people).by_password(EMAIL, "wrong", HERE)
    await people.do(sign_in_of(people).sign_out, await signed_in_of(people, session))
    trail = [(entry.action, entry.address) for entry in await people.audit()]
    assert trail == [
        ("user.signed_out", HERE),
        ("user.sign_in_refused", HERE),
        ("user.credentials_changed", HERE),
        ("user.signed_in", HERE),
        ("user.sign_in_link_made", None),
    ]


class Slow(Argon2Passwords):
    """Lets others do something while a password is looked at."""

    def __init__(self, meanwhile: Callable[[], Awaitable[object]]) -> None:
        super().__init__(CHEAP)
        self._meanwhile = meanwhile

    async def matches(self, password: str, known_hash: str | None) -> bool:
        matches = await super().matches(password, known_hash)
        await self._meanwhile()
        return matches


async def test_a_sign_in_with_a_password_that_was_just_changed_is_refused(people: Harness) -> None:
    signed_in = await signed_in_of(people, await member(people))

    async def change() -> None:
        owner = sign_in_of(people)
        await owner.change_credentials(signed_in, EMAIL, "another battery", PASSWORD)

    thief = replace(sign_in_of(people), passwords=Slow(change))
    with pytest.raises(WrongCredentials):
        await thief.by_password(EMAIL, PASSWORD, HERE)
    again = await sign_in_of(people).by_password(EMAIL, "another battery", HERE)
    assert again.user.id == signed_in.user.id


async def test_a_session_that_just_ended_changes_no_password(people: Harness) -> None:
    thief = await signed_in_of(people, await member(people))

    async def end() -> None:
        await people.do(sign_in_of(people).end_all, thief.user)

    slow = replace(sign_in_of(people), passwords=Slow(end))
    with pytest.raises(NotFound):
        await slow.change_credentials(thief, EMAIL, "another battery", PASSWORD)
    again = await sign_in_of(people).by_password(EMAIL, PASSWORD, HERE)
    assert again.user.id == thief.user.id
