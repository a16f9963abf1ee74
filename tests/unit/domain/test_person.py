"""People: what they may choose, and that nothing of it shows by accident."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from cuepost.domain.errors import Invalid
from cuepost.domain.person import (
    LONGEST_EMAIL,
    LONGEST_PASSWORD,
    SHORTEST_PASSWORD,
    Session,
    SignInLink,
    User,
    checked_email,
    checked_password,
    compose_opaque_token,
    opaque_token_digest,
)

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ONE, TWO = UUID(int=1), UUID(int=2)


def test_only_e_mail_and_password_together_let_someone_in_alone() -> None:
    user = User(ONE, TWO, NOW)
    assert not user.can_sign_in_alone(with_password=True)
    known = user.with_credentials("ada@example.com", "hash")
    assert known.can_sign_in_alone(with_password=True)
    assert not known.can_sign_in_alone(with_password=False)
    identified = replace(user, oidc_issuer="https://id.example.com", oidc_subject="7")
    assert identified.can_sign_in_alone(with_password=False)


def test_nothing_that_lets_someone_in_is_in_a_repr() -> None:
    user = User(ONE, TWO, NOW, "ada@example.com", "hash")
    session = Session(ONE, TWO, ONE, b"digest", NOW, NOW)
    link = SignInLink(ONE, TWO, ONE, b"digest", NOW)
    assert [repr(each) for each in (user, session, link)] == [
        f"User({TWO})",
        f"Session({TWO})",
        f"SignInLink({TWO})",
    ]


def test_a_session_lives_until_it_expires() -> None:
    session = Session(ONE, TWO, ONE, b"", NOW, NOW + timedelta(seconds=1))
    assert [session.is_live(NOW + timedelta(seconds=each)) for each in (0, 1)] == [True, False]


def test_a_session_that_a_link_has_opened_may_replace_the_password_for_an_hour() -> None:
    later = NOW + timedelta(days=1)
    by_link = Session(ONE, TWO, ONE, b"", NOW, later, by_link=True)
    other = Session(ONE, TWO, ONE, b"", NOW, later)
    hour = timedelta(hours=1)
    instants = (NOW, NOW + hour - timedelta(seconds=1), NOW + hour)
    assert [by_link.may_replace_password(each) for each in instants] == [True, True, False]
    assert not other.may_replace_password(NOW)


def test_a_pass_is_known_by_its_digest_whatever_is_in_it() -> None:
    assert compose_opaque_token(b"\xff" * 32) == "_" * 42 + "8"
    assert len({opaque_token_digest(text) for text in ("", "a", "\ud800", "ä")}) == 4


def test_an_e_mail_address_is_kept_in_lower_case() -> None:
    assert checked_email("  Ada@Example.COM ") == "ada@example.com"


@pytest.mark.parametrize(
    "text", ["", "ada", "ada@", "@example.com", "ada@example", "a a@b.c", "a@b.", "a@b@c.d"]
)
def test_what_is_no_e_mail_address_is_refused(text: str) -> None:
    with pytest.raises(Invalid) as refused:
        checked_email(text)
    assert [error.code for error in refused.value.errors] == ["email_invalid"]


def test_an_e_mail_address_has_a_longest_length() -> None:
    longest = "a" * (LONGEST_EMAIL - len("@b.c")) + "@b.c"
    assert checked_email(longest) == longest
    with pytest.raises(Invalid):
        checked_email("a" + longest)


def test_a_password_has_a_shortest_and_a_longest_length() -> None:
    for length in (SHORTEST_PASSWORD, LONGEST_PASSWORD):
        assert checked_password("x" * length) == "x" * length
    for length in (SHORTEST_PASSWORD - 1, LONGEST_PASSWORD + 1):
        with pytest.raises(Invalid) as refused:
            checked_password("x" * length)
        assert [error.code for error in refused.value.errors] == ["password_length"]
