"""The member that an identity of a provider leads to: found, created or connected."""

from dataclasses import dataclass, replace
from urllib.parse import urlsplit
from uuid import UUID

from cuepost.application.sign_in import NewSession, SignIn
from cuepost.application.user_caller import caller_of
from cuepost.domain.access import Account, Caller, Interface, Role
from cuepost.domain.account_reference import account_references
from cuepost.domain.audit import Action
from cuepost.domain.identity import Identity, IdentityRefused
from cuepost.domain.person import PROVIDER_SESSION_LIFE, User
from cuepost.ports.store import Transaction

UNKNOWN_ACCOUNT = "Your sign-in names an account that this service does not have."
EMAIL_IN_USE = (
    "A member of this account has your e-mail address already. Sign in as that member and connect "
    "it under Settings > Sign-in, or ask an owner of the account to remove that member."
)
OTHER_ACCOUNT = "Your sign-in at the provider is for another account than this member."
OTHER_MEMBER = "Your sign-in at the provider is connected with another member of this account."


@dataclass(frozen=True, slots=True)
class AdmitIdentity:
    """The provider is the authority for roles: it can also take the role of the last owner."""

    sign_in: SignIn

    async def admit(
        self,
        transaction: Transaction,
        identity: Identity,
        address: str | None,
        member_id: UUID | None = None,
    ) -> NewSession:
        """With `member_id`, that member is connected with the identity."""
        account = await self._locked_account(transaction, identity.account)
        account.require_live()
        known = await transaction.users.by_identity(account.id, identity.issuer, identity.subject)
        if member_id is not None:
            user = await self._connected(transaction, account, identity, known, member_id)
        else:
            user = known or await self._joined(transaction, account, identity, address)
        user = await self._with_role(transaction, user, identity)
        user = await self._with_email(transaction, user, identity)
        return await self.sign_in.open_session(
            transaction,
            user,
            address,
            by="openid",
            issuer=identity.issuer,
            life=PROVIDER_SESSION_LIFE,
        )

    async def _locked_account(self, transaction: Transaction, name: str) -> Account:
        for reference in account_references(name):
            account_id: UUID | None = reference if isinstance(reference, UUID) else None
            if isinstance(reference, str):
                found = await transaction.accounts.by_external_id(reference)
                account_id = found.id if found else None
            account = await transaction.accounts.lock(account_id) if account_id else None
            if account is not None:
                return account
        raise IdentityRefused(UNKNOWN_ACCOUNT)

    async def _connected(
        self,
        transaction: Transaction,
        account: Account,
        identity: Identity,
        known: User | None,
        member_id: UUID,
    ) -> User:
        user = await transaction.users.get(account.id, member_id)
        if user is None:
            raise IdentityRefused(OTHER_ACCOUNT)
        if known is not None and known.id != user.id:
            raise IdentityRefused(OTHER_MEMBER)
        connected = replace(user, oidc_issuer=identity.issuer, oidc_subject=identity.subject)
        await transaction.users.save_identity(connected)
        caller = caller_of(user, None, webhooks_enabled=False)
        await self.sign_in.audit.note(
            transaction,
            caller,
            Action.IDENTITY_CONNECTED,
            account.id,
            user.id,
            issuer=identity.issuer,
        )
        return connected

    async def _joined(
        self, transaction: Transaction, account: Account, identity: Identity, address: str | None
    ) -> User:
        """An address never leads to a member: who has it at the provider need not be that person.

        A member of another account keeps the address, and the new member has none.
        """
        holder = await transaction.users.by_email(identity.email) if identity.email else None
        if holder is not None and holder.account_id == account.id:
            raise IdentityRefused(EMAIL_IN_USE)
        now = self.sign_in.clock.now()
        user = User(
            account.id,
            self.sign_in.ids(now),
            now,
            None if holder else identity.email,
            role=identity.new_role,
            oidc_issuer=identity.issuer,
            oidc_subject=identity.subject,
        )
        await transaction.users.add(user)
        caller = caller_of(user, address, webhooks_enabled=False)
        await self.sign_in.audit.note(
            transaction, caller, Action.MEMBER_JOINED, account.id, user.id, role=user.role
        )
        return user

    async def _with_role(self, transaction: Transaction, user: User, identity: Identity) -> User:
        """A member who may do less than before is signed out everywhere."""
        role = identity.role
        if role is None or role is user.role:
            return user
        await transaction.users.set_role(user.account_id, user.id, role)
        if user.role.is_more_than(role):
            await self.sign_in.end_all(transaction, user)
        await self._note_role(transaction, user, role, identity.issuer)
        return replace(user, role=role)

    async def _note_role(
        self, transaction: Transaction, user: User, role: Role, issuer: str
    ) -> None:
        provider = Caller(
            Interface.PAGES,
            f"provider:{urlsplit(issuer).hostname}",
            user.account_id,
            frozenset(),
            name=issuer,
        )
        details = {"email": user.email} if user.email else {}
        await self.sign_in.audit.note(
            transaction,
            provider,
            Action.ROLE_CHANGED,
            user.account_id,
            user.id,
            **details,
            role=role,
            was=user.role,
        )

    async def _with_email(self, transaction: Transaction, user: User, identity: Identity) -> User:
        """The address of a member who signs in with a password stays as they chose it."""
        email = identity.email
        if email is None or email == user.email or user.password_hash is not None:
            return user
        if await transaction.users.by_email(email) is not None:
            return user
        changed = replace(user, email=email)
        await transaction.users.save_credentials(changed)
        return changed
