"""Portal links: a host product signs a member in to the pages of an account."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from uuid import UUID

from cuepost.application.account_members import (
    MemberReference,
    as_owner,
    found_member,
    required_role,
)
from cuepost.application.manage_accounts import locked_account
from cuepost.application.manage_members import ManageMembers
from cuepost.application.sign_in import NewSession, SignIn
from cuepost.domain.access import Account, Caller, Role, Scope
from cuepost.domain.account_reference import AccountReference
from cuepost.domain.audit import Action
from cuepost.domain.errors import NotFound
from cuepost.domain.person import (
    OPAQUE_TOKEN_BYTES,
    User,
    compose_opaque_token,
    opaque_token_digest,
)
from cuepost.domain.portal import (
    DEFAULT_LINK_SECONDS,
    PORTAL_SESSION_LIFE,
    PortalLink,
    PortalPolicy,
    PortalTheme,
)
from cuepost.ports.store import Transaction

OVER = "This link was used or revoked, or has expired."


@dataclass(frozen=True, slots=True)
class WantedLink:
    """Without a role the member keeps the one it has."""

    member: MemberReference
    role: Role | None = None
    life: timedelta = timedelta(seconds=DEFAULT_LINK_SECONDS)
    return_url: str | None = None
    theme: PortalTheme = field(default_factory=PortalTheme)


@dataclass(frozen=True, slots=True)
class NewPortalLink:
    """`url` is shown once; the store keeps a digest of its token."""

    link: PortalLink
    user: User
    url: str

    def __repr__(self) -> str:
        return f"NewPortalLink({self.link.id})"


@dataclass(frozen=True, slots=True)
class Portal:
    """Changes lock the account, so that none of them misses a session that is being opened."""

    sign_in: SignIn
    members: ManageMembers
    policy: PortalPolicy
    address: Callable[[str], str]

    async def create(
        self,
        transaction: Transaction,
        caller: Caller,
        reference: AccountReference,
        wanted: WantedLink,
    ) -> NewPortalLink:
        caller.require(Scope.PORTAL_CREATE)
        self.policy.check(wanted.return_url, wanted.theme)
        account = await self._live(transaction, reference)
        user = await self._member(transaction, as_owner(caller, account), account, wanted)
        now = self.sign_in.clock.now()
        token = compose_opaque_token(self.sign_in.entropy(OPAQUE_TOKEN_BYTES))
        expires_at = now + wanted.life
        link = PortalLink(
            account_id=account.id,
            id=self.sign_in.ids(now),
            user_id=user.id,
            digest=opaque_token_digest(token),
            created_at=now,
            expires_at=expires_at,
            ends_at=expires_at,
            return_url=wanted.return_url,
            theme=wanted.theme,
        )
        await transaction.portal_links.add(link)
        await self._note(transaction, caller, Action.PORTAL_LINK_CREATED, link, user)
        return NewPortalLink(link, user, self.address(token))

    async def revoke(
        self,
        transaction: Transaction,
        caller: Caller,
        reference: AccountReference,
        link_id: UUID,
    ) -> None:
        """Ends the session that the link opened as well."""
        caller.require(Scope.PORTAL_CREATE)
        account = await self._live(transaction, reference)
        link = await transaction.portal_links.get(account.id, link_id)
        if link is None or link.ends_at <= self.sign_in.clock.now():
            raise NotFound("There is no such portal link in this account, or it has ended.")
        await transaction.portal_links.end(account.id, link_id)
        await self._note(transaction, caller, Action.PORTAL_LINK_REVOKED, link)

    async def end_sessions(
        self,
        transaction: Transaction,
        caller: Caller,
        reference: AccountReference,
        member: MemberReference | None,
    ) -> None:
        """Also ends links that were not used yet; of one member, or of the account."""
        caller.require(Scope.PORTAL_CREATE)
        account = await self._live(transaction, reference)
        user = None
        if member is not None:
            user = await found_member(transaction, account, member)
            if user is None:
                raise NotFound("There is no such member in this account.")
        await transaction.portal_links.end_all(account.id, user.id if user else None)
        await self._note(transaction, caller, Action.PORTAL_SESSIONS_ENDED, account, user)

    async def look(self, transaction: Transaction, token: str) -> PortalLink:
        """Does not use the link up, because browsers and chat programs prefetch links."""
        found = await transaction.portal_links.find(opaque_token_digest(token))
        if found is None or not found.is_live(self.sign_in.clock.now()):
            raise NotFound(OVER)
        return found

    async def enter(self, transaction: Transaction, token: str, address: str | None) -> NewSession:
        link = await self.look(transaction, token)
        account = await transaction.accounts.lock(link.account_id)
        user = await transaction.users.get(link.account_id, link.user_id)
        now = self.sign_in.clock.now()
        ends_at = now + PORTAL_SESSION_LIFE
        if account is None or user is None:
            raise NotFound(OVER)
        account.require_live()
        if not await transaction.portal_links.take(link.account_id, link.id, now, ends_at):
            raise NotFound(OVER)
        return await self.sign_in.open_session(
            transaction, user, address, by="portal", session_id=link.id, life=PORTAL_SESSION_LIFE
        )

    async def _live(self, transaction: Transaction, reference: AccountReference) -> Account:
        account = await locked_account(transaction, reference)
        account.require_live()
        return account

    async def _member(
        self, transaction: Transaction, owner: Caller, account: Account, wanted: WantedLink
    ) -> User:
        user = await found_member(transaction, account, wanted.member)
        if user is None:
            role, external_id = required_role(wanted.role), str(wanted.member)
            return await self.members.add(transaction, owner, role, None, external_id)
        if wanted.role is None or wanted.role is user.role:
            return user
        changed = await self.members.change_role(transaction, owner, user.id, wanted.role)
        return replace(user, role=changed.role)

    async def _note(
        self,
        transaction: Transaction,
        caller: Caller,
        action: Action,
        subject: PortalLink | Account,
        user: User | None = None,
    ) -> None:
        details = {"role": user.role.value, "member": str(user.id)} if user else {}
        if user is not None and user.external_id is not None:
            details["externalId"] = user.external_id
        account_id = subject.id if isinstance(subject, Account) else subject.account_id
        await self.sign_in.audit.note(
            transaction, caller, action, account_id, subject.id, **details
        )
