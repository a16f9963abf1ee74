"""Invitations by e-mail: sent once the mail server takes them, and only while they are open."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
from argon2 import PasswordHasher

from cuepost.adapters.argon2_passwords import Argon2Passwords
from cuepost.adapters.smtp_mail import SmtpMailer, SmtpServer
from cuepost.application.manage_members import NewInvitation
from cuepost.application.service import SystemPorts, assemble
from cuepost.domain.access import AccountState, Role
from cuepost.domain.errors import NotFound
from cuepost.domain.invitation import INVITATION_LIFE
from cuepost.ports.records import Page
from cuepost.testing import RepeatableEntropy
from tests.application.harness import BASE_URL, RULES, Harness
from tests.support.mail_server import MailServer, mail_server
from tests.support.service_process import free_port

EMAIL, PASSWORD = "ada@example.com", "correct horse battery"
CHEAP = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)


@dataclass(slots=True)
class Inviting:
    harness: Harness
    server: MailServer

    async def invite(self, email: str | None = EMAIL) -> NewInvitation:
        harness = self.harness
        return await harness.do(
            harness.service.members.invite, harness.owner, Role.DEVELOPER, email
        )

    async def work(self) -> None:
        server = SmtpServer("127.0.0.1", self.server.port)
        mailer = SmtpMailer(server, "cuepost@example.com", self.harness.clock)
        while await self.harness.service.maintenance.invitation_mails.step(mailer):
            pass

    async def queued(self) -> list[bool]:
        members = self.harness.service.members
        found = await self.harness.see(members.invitations, self.harness.owner, Page(10))
        return [each.email_queued for each in found]

    async def rows(self) -> int:
        return len((await self.harness.dump())["invitation_mails"])


@pytest.fixture
def server() -> Iterator[MailServer]:
    with mail_server(free_port()) as server:
        yield server


@pytest.fixture
def inviting(harness: Harness, server: MailServer) -> Inviting:
    entropy = RepeatableEntropy("people")
    system = SystemPorts(harness.clock, harness.ids, entropy, harness.box, Argon2Passwords(CHEAP))
    rules = replace(RULES, mails=True)
    return Inviting(replace(harness, service=assemble(harness.store, system, rules)), server)


def token_in(server: MailServer, number: int = 0) -> str:
    [token] = re.findall(f"^{BASE_URL}/join/(.+)$", server.text(number), re.MULTILINE)
    return str(token)


async def test_an_invitation_is_one_mail_with_a_link_that_works(inviting: Inviting) -> None:
    made = await inviting.invite()
    assert (made.invitation.email_queued, await inviting.queued()) == (True, [True])
    await inviting.work()
    await inviting.work()
    [mail] = inviting.server.messages
    assert (mail["To"], mail["Subject"]) == (EMAIL, "[cuepost] You are invited to Test account")
    assert made.url == f"{BASE_URL}/join/{token_in(inviting.server)}"
    assert (await inviting.queued(), await inviting.rows()) == ([False], 0)

    joining = inviting.harness.service.joining
    session = await joining.accept(token_in(inviting.server), "", PASSWORD, None)
    assert (session.user.email, session.user.role) == (EMAIL, Role.DEVELOPER)


async def test_the_token_waits_sealed_and_only_until_the_mail_is_sent(inviting: Inviting) -> None:
    made = await inviting.invite()
    token = made.url.rpartition("/")[2]
    assert token not in repr(await inviting.harness.dump())
    [waiting] = await inviting.harness.do(
        inviting.harness.service.maintenance.invitation_mails.take
    )
    assert token.encode() not in waiting.sealed
    assert inviting.harness.box.open(waiting.sealed, waiting.id.bytes) == token.encode()


async def test_while_the_mail_server_is_down_it_waits(inviting: Inviting) -> None:
    inviting.server.refusing = True
    await inviting.invite()
    for _ in range(3):
        await inviting.work()
        inviting.harness.clock.advance(seconds=30)
    assert (inviting.server.messages, await inviting.queued()) == ([], [True])

    inviting.server.refusing = False
    inviting.harness.clock.advance(minutes=10)
    await inviting.work()
    assert len(inviting.server.messages) == 1
    assert await inviting.rows() == 0


async def test_one_that_is_revoked_before_is_not_sent(inviting: Inviting) -> None:
    harness = inviting.harness
    made = await inviting.invite()
    await harness.do(harness.service.members.revoke, harness.owner, made.invitation.id)
    assert await inviting.rows() == 0
    await inviting.work()
    assert inviting.server.messages == []


async def test_one_that_is_revoked_between_two_tries_is_not_sent(inviting: Inviting) -> None:
    harness = inviting.harness
    inviting.server.refusing = True
    made = await inviting.invite()
    await inviting.work()
    # As a process does that has read it before the revocation.
    [waiting] = (await harness.dump())["invitation_mails"]
    await harness.do(harness.service.members.revoke, harness.owner, made.invitation.id)
    inviting.server.refusing = False
    harness.clock.advance(hours=1)
    await inviting.work()
    assert (inviting.server.messages, await inviting.rows()) == ([], 0)
    assert waiting.attempts_made == 1


async def test_one_that_is_sent_again_is_a_mail_of_its_own(inviting: Inviting) -> None:
    harness = inviting.harness
    made = await inviting.invite()
    await inviting.work()
    again = await harness.do(harness.service.members.resend, harness.owner, made.invitation.id)
    assert (again.invitation.email_queued, await inviting.queued()) == (True, [True])
    await inviting.work()
    assert [mail["To"] for mail in inviting.server.messages] == [EMAIL, EMAIL]
    assert again.url == f"{BASE_URL}/join/{token_in(inviting.server, 1)}"
    with pytest.raises(NotFound):
        await harness.see(harness.service.joining.look, token_in(inviting.server))
    await harness.see(harness.service.joining.look, token_in(inviting.server, 1))


async def test_one_that_is_sent_again_while_its_first_mail_is_under_way_is_sent(
    inviting: Inviting,
) -> None:
    harness, mails = inviting.harness, inviting.harness.service.maintenance.invitation_mails
    made = await inviting.invite()
    [under_way] = await harness.do(mails.take)
    await harness.do(harness.service.members.resend, harness.owner, made.invitation.id)
    # The end of the first mail leaves the second one.
    await harness.do(lambda transaction: mails.outbox.drop(transaction, under_way))
    await inviting.work()
    assert len(inviting.server.messages) == 1


async def test_only_the_newest_to_an_address_is_sent(inviting: Inviting) -> None:
    await inviting.invite()
    newest = await inviting.invite()
    await inviting.work()
    assert len(inviting.server.messages) == 1
    assert newest.url.endswith(token_in(inviting.server))


async def test_one_that_was_used_by_its_copied_link_is_not_sent(inviting: Inviting) -> None:
    made = await inviting.invite()
    token = made.url.rpartition("/")[2]
    await inviting.harness.service.joining.accept(token, "", PASSWORD, None)
    await inviting.work()
    assert (inviting.server.messages, await inviting.rows()) == ([], 0)


async def test_one_that_expired_is_given_up(inviting: Inviting) -> None:
    inviting.server.refusing = True
    made = await inviting.invite()
    inviting.harness.clock.advance(seconds=INVITATION_LIFE.total_seconds())
    await inviting.work()
    assert await inviting.rows() == 0
    with pytest.raises(NotFound):
        await inviting.harness.see(
            inviting.harness.service.joining.look, made.url.rpartition("/")[2]
        )


async def test_an_open_invitation_has_no_address_to_send_to(inviting: Inviting) -> None:
    made = await inviting.invite(email=None)
    assert (made.invitation.email_queued, await inviting.rows()) == (False, 0)


async def test_without_a_mail_server_none_is_queued(harness: Harness) -> None:
    members = harness.service.members
    made = await harness.do(members.invite, harness.owner, Role.VIEWER, EMAIL)
    assert not made.invitation.email_queued
    assert (await harness.dump())["invitation_mails"] == []


@pytest.mark.parametrize("state", [AccountState.LEAVING, AccountState.ARRIVING])
async def test_while_the_account_moves_mails_wait(inviting: Inviting, state: AccountState) -> None:
    harness = inviting.harness
    await inviting.invite()
    await harness.do(lambda t: t.moves.set_state(harness.account.id, state))
    await inviting.work()
    assert (inviting.server.messages, await inviting.rows()) == ([], 1)
    await harness.do(lambda t: t.moves.set_state(harness.account.id, AccountState.LIVE))
    await inviting.work()
    assert len(inviting.server.messages) == 1


async def test_a_slow_mail_server_does_not_outlast_the_lease(inviting: Inviting) -> None:
    """Mails of a batch that could not be sent while it is leased are left to the next one."""
    for number in range(8):
        await inviting.invite(f"ada{number}@example.com")

    class Slow:
        sent = 0

        async def send(self, recipient: str, subject: str, text: str) -> None:
            self.sent += 1
            inviting.harness.clock.advance(seconds=29)

    slow = Slow()
    await inviting.harness.service.maintenance.invitation_mails.step(slow)
    assert (slow.sent, await inviting.rows()) == (4, 4)
