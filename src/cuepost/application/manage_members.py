"""Members of an account: who they are, what each may do, invitations and removal."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from uuid import UUID

from cuepost.application.audit_trail import AuditTrail
from cuepost.domain.access import Caller, Role, Scope
from cuepost.domain.account_reference import checked_external_id
from cuepost.domain.audit import Action
from cuepost.domain.errors import EmailTaken, ExternalIdTaken, InvitationLimitReached, NotFound
from cuepost.domain.invitation import (
    INVITATION_LIFE,
    MOST_INVITATIONS,
    Invitation,
    InvitationMail,
    require_owner_without,
)
from cuepost.domain.person import (
    OPAQUE_TOKEN_BYTES,
    PasswordSignInOff,
    User,
    checked_email,
    compose_opaque_token,
    opaque_token_digest,
)
from cuepost.ports.records import Page
from cuepost.ports.store import Transaction
from cuepost.ports.system import Clock, Entropy, IdSource, SecretBox


@dataclass(frozen=True, slots=True)
class NewInvitation:
    """`url` is shown once; the store keeps a digest of its token.

    Until an e-mail with the link is sent, the store has the token as well, sealed.
    """

    invitation: Invitation
    url: str

    def __repr__(self) -> str:
        return f"NewInvitation({self.invitation.id})"


@dataclass(frozen=True, slots=True)
class MemberChange:
    """What is None stays as it is; `sets_external_id` tells that from an id to be removed."""

    role: Role | None = None
    sets_external_id: bool = False
    external_id: str | None = None
    alerts_by_email: bool | None = None


@dataclass(frozen=True, slots=True)
class ManageMembers:
    """Each change locks the account first, so that no two leave it without an owner."""

    clock: Clock
    ids: IdSource
    entropy: Entropy
    audit: AuditTrail
    address: Callable[[str], str]
    box: SecretBox
    by_email: bool
    allows_passwords: bool = True

    async def page(self, transaction: Transaction, caller: Caller, page: Page) -> list[User]:
        caller.require(Scope.MEMBERS_READ)
        return await transaction.users.page(caller.account, page)

    async def get(self, transaction: Transaction, caller: Caller, user_id: UUID) -> User:
        caller.require(Scope.MEMBERS_READ)
        user = await transaction.users.get(caller.account, user_id)
        if user is None:
            raise NotFound
        return user

    async def add(
        self,
        transaction: Transaction,
        caller: Caller,
        role: Role,
        email: str | None,
        external_id: str | None,
    ) -> User:
        """A member without a password, whom the operator or a host product signs in by links."""
        account_id, now = await self._lock_account(transaction, caller), self.clock.now()
        address = checked_email(email) if email else None
        if address is not None:
            await _require_no_member_with(transaction, address)
        if external_id is not None:
            await _require_free(transaction, account_id, external_id)
        user = User(account_id, self.ids(now), now, address, role=role, external_id=external_id)
        await transaction.users.add(user)
        await self._note(transaction, caller, Action.MEMBER_ADDED, user, role=role)
        return user

    async def change(
        self, transaction: Transaction, caller: Caller, user_id: UUID, change: MemberChange
    ) -> User:
        user = await self._locked(transaction, caller, user_id)
        if change.sets_external_id and change.external_id != user.external_id:
            if change.external_id is not None:
                await _require_free(transaction, user.account_id, change.external_id)
            user = replace(user, external_id=change.external_id)
            await transaction.users.set_external_id(user.account_id, user.id, user.external_id)
            await self._note(transaction, caller, Action.MEMBER_CHANGED, user)
        if change.alerts_by_email not in {None, user.wants_alerts}:
            user = replace(user, wants_alerts=not user.wants_alerts)
            await transaction.users.set_alerts(user.account_id, user.id, user.wants_alerts)
            wanted = "on" if user.wants_alerts else "off"
            await self._note(transaction, caller, Action.ALERTS_CHANGED, user, alerts=wanted)
        if change.role is None:
            return user
        changed = await self.change_role(transaction, caller, user_id, change.role)
        return replace(user, role=changed.role)

    async def change_role(
        self, transaction: Transaction, caller: Caller, user_id: UUID, role: Role
    ) -> User:
        """A member who may do less than before is signed out everywhere."""
        user = await self._locked(transaction, caller, user_id)
        if user.role is role:
            return user
        require_owner_without(user, await transaction.users.owners(user.account_id))
        await transaction.users.set_role(user.account_id, user.id, role)
        if user.role.is_more_than(role):
            await self._sign_out(transaction, user)
        await self._note(transaction, caller, Action.ROLE_CHANGED, user, role=role, was=user.role)
        return replace(user, role=role)

    async def remove(self, transaction: Transaction, caller: Caller, user_id: UUID) -> None:
        user = await self._locked(transaction, caller, user_id)
        require_owner_without(user, await transaction.users.owners(user.account_id))
        await transaction.users.remove(user.account_id, user.id)
        await self._sign_out(transaction, user)
        await self._note(transaction, caller, Action.MEMBER_REMOVED, user, role=user.role)

    async def invitations(
        self, transaction: Transaction, caller: Caller, page: Page
    ) -> list[Invitation]:
        caller.require(Scope.MEMBERS_READ)
        return await transaction.invitations.page(caller.account, page, self.clock.now())

    async def invite(
        self, transaction: Transaction, caller: Caller, role: Role, email: str | None
    ) -> NewInvitation:
        """With an e-mail it replaces the earlier invitations to that address.

        An invited person chooses a password, so there are no invitations without passwords.
        """
        self._require_passwords()
        account_id, now = await self._lock_account(transaction, caller), self.clock.now()
        address = checked_email(email) if email else None
        if address is not None:
            await _require_no_member_with(transaction, address)
            await transaction.invitations.end_of_email(account_id, address)
        if await transaction.invitations.count(account_id, now) >= MOST_INVITATIONS:
            raise InvitationLimitReached(
                f"The account has {MOST_INVITATIONS} open invitations already; revoke one first."
            )
        made = await self._add_invitation(transaction, account_id, role, address)
        await self._note_invitation(transaction, caller, Action.MEMBER_INVITED, made.invitation)
        return made

    async def resend(
        self, transaction: Transaction, caller: Caller, invitation_id: UUID
    ) -> NewInvitation:
        """A new invitation for the same person and role takes the place of an open one.

        It has an id of its own, so that an e-mail of the old one that is just being sent is not
        mistaken for its own.
        """
        self._require_passwords()
        account_id = await self._lock_account(transaction, caller)
        old = await self._open_invitation(transaction, account_id, invitation_id)
        if old.email is not None:
            await _require_no_member_with(transaction, old.email)
        await transaction.invitations.take(account_id, old.id)
        made = await self._add_invitation(transaction, account_id, old.role, old.email)
        await self._note_invitation(transaction, caller, Action.INVITATION_RESENT, made.invitation)
        return made

    async def revoke(self, transaction: Transaction, caller: Caller, invitation_id: UUID) -> None:
        account_id = await self._lock_account(transaction, caller)
        invitation = await self._open_invitation(transaction, account_id, invitation_id)
        await transaction.invitations.take(account_id, invitation_id)
        await self._note_invitation(transaction, caller, Action.INVITATION_REVOKED, invitation)

    def _require_passwords(self) -> None:
        if not self.allows_passwords:
            raise PasswordSignInOff

    async def _open_invitation(
        self, transaction: Transaction, account_id: UUID, invitation_id: UUID
    ) -> Invitation:
        found = await transaction.invitations.get(account_id, invitation_id)
        if found is None or not found.is_live(self.clock.now()):
            raise NotFound
        return found

    async def _add_invitation(
        self, transaction: Transaction, account_id: UUID, role: Role, address: str | None
    ) -> NewInvitation:
        now = self.clock.now()
        token = compose_opaque_token(self.entropy(OPAQUE_TOKEN_BYTES))
        made = Invitation(
            account_id,
            self.ids(now),
            opaque_token_digest(token),
            role,
            address,
            now,
            now + INVITATION_LIFE,
            email_queued=self.by_email and address is not None,
        )
        await transaction.invitations.add(made)
        if made.email_queued:
            sealed = self.box.seal(token.encode(), made.id.bytes)
            mail = InvitationMail(account_id, made.id, sealed, now, made.expires_at)
            await transaction.invitations.add_mail(mail)
        return NewInvitation(made, self.address(token))

    async def _locked(self, transaction: Transaction, caller: Caller, user_id: UUID) -> User:
        account_id = await self._lock_account(transaction, caller)
        user = await transaction.users.get(account_id, user_id)
        if user is None:
            raise NotFound
        return user

    async def _lock_account(self, transaction: Transaction, caller: Caller) -> UUID:
        caller.require(Scope.MEMBERS_MANAGE)
        account = await transaction.accounts.lock(caller.account)
        if account is None:
            raise NotFound
        account.require_live()
        return account.id

    async def _sign_out(self, transaction: Transaction, user: User) -> None:
        await transaction.sessions.end_of_user(user.account_id, user.id)
        await transaction.sign_in_links.end_of_user(user.account_id, user.id)
        await transaction.portal_links.end_all(user.account_id, user.id)

    async def _note(
        self, transaction: Transaction, caller: Caller, action: Action, user: User, **more: str
    ) -> None:
        names = {"email": user.email, "externalId": user.external_id}
        details = {name: text for name, text in names.items() if text}
        await self.audit.note(
            transaction, caller, action, user.account_id, user.id, **details, **more
        )

    async def _note_invitation(
        self, transaction: Transaction, caller: Caller, action: Action, invitation: Invitation
    ) -> None:
        details = {"email": invitation.email} if invitation.email else {}
        await self.audit.note(
            transaction,
            caller,
            action,
            invitation.account_id,
            invitation.id,
            **details,
            role=invitation.role,
        )


async def _require_no_member_with(transaction: Transaction, email: str) -> None:
    if await transaction.users.by_email(email) is not None:
        raise EmailTaken


async def _require_free(transaction: Transaction, account_id: UUID, external_id: str) -> None:
    """The account is locked, so that no other request adds the same id now."""
    holder = await transaction.users.by_external_id(account_id, checked_external_id(external_id))
    if holder is not None:
        raise ExternalIdTaken(
            f"The member {holder.id} has this external id.", memberId=str(holder.id)
        )
