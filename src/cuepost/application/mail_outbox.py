"""Sends e-mails that wait in the store, in steps that any process may do.

A mail is written in the transaction of its cause, and dropped only after the mail server has taken
it. So it is sent at least once; twice only if a process dies between the two.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Generic, Protocol, TypeVar
from urllib.parse import urlsplit
from uuid import UUID

from cuepost.application.perform import Perform
from cuepost.domain.alert import AlertMail, message
from cuepost.domain.instants import to_text
from cuepost.domain.invitation import InvitationMail, invitation_message
from cuepost.domain.mail import Message, mail_retry_after
from cuepost.ports.mail import DEADLINE_SECONDS, Mailer, MailNotSent
from cuepost.ports.store import Transaction
from cuepost.ports.system import Clock, SecretBox

AT_ONCE = 10
# During this time no other process sends them.
LEASE = timedelta(minutes=2)
DEADLINE = timedelta(seconds=DEADLINE_SECONDS)

M = TypeVar("M", AlertMail, InvitationMail)
log = logging.getLogger("cuepost.mail")


@dataclass(frozen=True, slots=True)
class Letter:
    recipient: str
    message: Message


class Outbox(Protocol[M]):
    """The mails of one kind."""

    @property
    def kind(self) -> str: ...
    async def has_due(self, transaction: Transaction, now: datetime) -> bool: ...
    async def due(self, transaction: Transaction, now: datetime, limit: int) -> list[M]: ...
    async def postpone(self, transaction: Transaction, mail: M) -> None: ...
    async def drop(self, transaction: Transaction, mail: M) -> None: ...
    async def letter(self, transaction: Transaction, mail: M) -> Letter | None:
        """None if it is not to be sent any more."""
        ...

    def is_given_up(self, mail: M, now: datetime) -> bool: ...


@dataclass(frozen=True, slots=True)
class SendMails(Generic[M]):
    perform: Perform
    clock: Clock
    outbox: Outbox[M]

    async def step(self, mailer: Mailer) -> bool:
        """Answers whether there may be more to send at once."""
        now = self.clock.now()
        if not await self.perform.read(lambda t: self.outbox.has_due(t, now)):
            return False
        taken = await self.perform.change(self.take)
        for mail in taken:
            if self.clock.now() + DEADLINE > now + LEASE:
                break
            await self._send(mailer, mail)
        return len(taken) == AT_ONCE

    async def take(self, transaction: Transaction) -> list[M]:
        now = self.clock.now()
        found = await self.outbox.due(transaction, now, AT_ONCE)
        for mail in found:
            await self.outbox.postpone(transaction, replace(mail, due_at=now + LEASE))
        return found

    async def _send(self, mailer: Mailer, mail: M) -> None:
        letter = await self.perform.read(lambda t: self.outbox.letter(t, mail))
        if letter is not None:
            said = letter.message
            try:
                await mailer.send(letter.recipient, said.subject, said.text)
            except MailNotSent as error:
                await self._put_off(mail, error)
                return
        await self.perform.change(lambda t: self.outbox.drop(t, mail))

    async def _put_off(self, mail: M, error: MailNotSent) -> None:
        now = self.clock.now()
        tried = replace(
            mail,
            due_at=now + mail_retry_after(mail.attempts_made),
            attempts_made=mail.attempts_made + 1,
        )
        given_up = self.outbox.is_given_up(tried, now)
        log.warning(
            "event=%s kind=%s attempts=%d error=%s",
            "mail_given_up" if given_up else "mail_not_sent",
            self.outbox.kind,
            tried.attempts_made,
            error,
        )
        end = self.outbox.drop if given_up else self.outbox.postpone
        await self.perform.change(lambda t: end(t, tried))


@dataclass(frozen=True, slots=True)
class AlertOutbox:
    page_of: Callable[[UUID], str]
    kind: str = "alert"

    async def has_due(self, transaction: Transaction, now: datetime) -> bool:
        return await transaction.alerts.has_due_mails(now)

    async def due(self, transaction: Transaction, now: datetime, limit: int) -> list[AlertMail]:
        return await transaction.alerts.due_mails(now, limit)

    async def postpone(self, transaction: Transaction, mail: AlertMail) -> None:
        await transaction.alerts.postpone_mail(mail)

    async def drop(self, transaction: Transaction, mail: AlertMail) -> None:
        await transaction.alerts.drop_mail(mail)

    async def letter(self, transaction: Transaction, mail: AlertMail) -> Letter | None:
        user = await transaction.users.get(mail.account_id, mail.user_id)
        endpoint = await transaction.endpoints.get(mail.account_id, mail.webhook_id)
        if user is None or user.email is None or not user.wants_alerts or endpoint is None:
            return None
        host = urlsplit(endpoint.url).hostname or endpoint.url
        said = message(mail, host, self.page_of(mail.webhook_id), to_text(mail.since))
        return Letter(user.email, said)

    def is_given_up(self, mail: AlertMail, now: datetime) -> bool:
        return mail.is_given_up(now)


@dataclass(frozen=True, slots=True)
class InvitationOutbox:
    box: SecretBox
    address: Callable[[str], str]
    kind: str = "invitation"

    async def has_due(self, transaction: Transaction, now: datetime) -> bool:
        return await transaction.invitations.has_due_mails(now)

    async def due(
        self, transaction: Transaction, now: datetime, limit: int
    ) -> list[InvitationMail]:
        return await transaction.invitations.due_mails(now, limit)

    async def postpone(self, transaction: Transaction, mail: InvitationMail) -> None:
        await transaction.invitations.postpone_mail(mail)

    async def drop(self, transaction: Transaction, mail: InvitationMail) -> None:
        await transaction.invitations.drop_mail(mail.account_id, mail.id)

    async def letter(self, transaction: Transaction, mail: InvitationMail) -> Letter | None:
        invitation = await transaction.invitations.get(mail.account_id, mail.id)
        account = await transaction.accounts.get(mail.account_id)
        if invitation is None or invitation.email is None or account is None:
            return None
        if account.erasing_since is not None:
            return None
        token = self.box.open(mail.sealed, mail.id.bytes).decode()
        expires_at = to_text(invitation.expires_at)
        url = self.address(token)
        said = invitation_message(account.name, invitation.role, url, expires_at)
        return Letter(invitation.email, said)

    def is_given_up(self, mail: InvitationMail, now: datetime) -> bool:
        return now >= mail.expires_at
