"""Invitations live for a week, and an account keeps an owner."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from cuepost.domain.access import Role
from cuepost.domain.errors import LastOwner
from cuepost.domain.invitation import (
    INVITATION_LIFE,
    Invitation,
    InvitationMail,
    invitation_message,
    require_owner_without,
)
from cuepost.domain.person import User

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ACCOUNT = UUID(int=1)


def user(number: int, role: Role = Role.OWNER) -> User:
    return User(ACCOUNT, UUID(int=number), NOW, role=role)


def test_an_invitation_lives_for_a_week() -> None:
    expires_at = NOW + INVITATION_LIFE
    invitation = Invitation(ACCOUNT, UUID(int=2), b"", Role.VIEWER, None, NOW, expires_at)
    week = timedelta(days=7)
    instants = (NOW, NOW + week - timedelta(milliseconds=1), NOW + week)
    assert [invitation.is_live(each) for each in instants] == [True, True, False]


def test_the_last_owner_stays() -> None:
    with pytest.raises(LastOwner):
        require_owner_without(user(1), [user(1)])


@pytest.mark.parametrize("role", [Role.DEVELOPER, Role.VIEWER])
def test_a_member_who_is_no_owner_may_leave(role: Role) -> None:
    require_owner_without(user(2, role), [user(1)])
    require_owner_without(user(2, role), [])


def test_one_of_two_owners_may_leave() -> None:
    require_owner_without(user(1), [user(1), user(2)])


def test_the_message_has_the_link_on_a_line_and_a_subject_of_one_line() -> None:
    url = "https://cuepost.example.com/join/token"
    said = invitation_message("Studio\r\nBcc: all", Role.VIEWER, url, "2026-01-09")
    assert said.subject == "[cuepost] You are invited to Studio Bcc: all"
    assert f"\n{url}\n" in said.text
    assert "as viewer" in said.text
    assert "until 2026-01-09" in said.text


def test_a_mail_that_waits_does_not_show_its_token() -> None:
    mail = InvitationMail(ACCOUNT, UUID(int=2), b"token", NOW, NOW + INVITATION_LIFE)
    assert "token" not in repr(mail)
