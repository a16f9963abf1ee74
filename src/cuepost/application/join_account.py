"""Accepting an invitation: the person chooses a password, becomes a member and is signed in."""

from dataclasses import dataclass

from cuepost.application.sign_in import NewSession, SignIn
from cuepost.application.user_caller import caller_of
from cuepost.domain.access import Account
from cuepost.domain.audit import Action
from cuepost.domain.errors import EmailTaken, NotFound
from cuepost.domain.invitation import Invitation
from cuepost.domain.person import User, checked_email, checked_password, opaque_token_digest
from cuepost.ports.store import Transaction

OVER = "This invitation was used or revoked, or is older than a week."


@dataclass(frozen=True, slots=True)
class OpenInvitation:
    invitation: Invitation
    account: Account


@dataclass(frozen=True, slots=True)
class JoinAccount:
    sign_in: SignIn

    async def look(self, transaction: Transaction, token: str) -> OpenInvitation:
        """Does not use the invitation up, because browsers and chat programs prefetch links."""
        self.sign_in.require_passwords()
        found = await transaction.invitations.find(opaque_token_digest(token))
        if found is None or not found.is_live(self.sign_in.clock.now()):
            raise NotFound(OVER)
        account = await transaction.accounts.get(found.account_id)
        if account is None:
            raise NotFound(OVER)
        account.require_live()
        return OpenInvitation(found, account)

    async def accept(
        self, token: str, email: str, password: str, address: str | None
    ) -> NewSession:
        """`email` counts only where the invitation names none."""
        invitation = (
            await self.sign_in.perform.read(lambda read: self.look(read, token))
        ).invitation
        chosen = invitation.email or checked_email(email)
        hashed = await self.sign_in.passwords.hashed(checked_password(password))
        now = self.sign_in.clock.now()
        user = User(
            invitation.account_id, self.sign_in.ids(now), now, chosen, hashed, role=invitation.role
        )
        return await self.sign_in.perform.change(
            lambda transaction: self._join(transaction, token, user, address)
        )

    async def _join(
        self, transaction: Transaction, token: str, user: User, address: str | None
    ) -> NewSession:
        invitation = (await self.look(transaction, token)).invitation
        if await transaction.users.by_email(user.email or "") is not None:
            raise EmailTaken
        if not await transaction.invitations.take(invitation.account_id, invitation.id):
            raise NotFound(OVER)
        await transaction.users.add(user)
        await self.sign_in.audit.note(
            transaction,
            caller_of(user, address, webhooks_enabled=False),
            Action.MEMBER_JOINED,
            user.account_id,
            user.id,
            role=user.role,
        )
        return await self.sign_in.open_session(transaction, user, address, by="invitation")
