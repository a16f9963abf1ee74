"""Signing in to the settings pages: by a one-time link, or by e-mail and password."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from cuepost.application.audit_trail import AuditTrail
from cuepost.application.perform import Perform, require_live
from cuepost.application.sign_in_limits import SignInLimits
from cuepost.application.user_caller import caller_of
from cuepost.domain.access import Account, AccountState, Caller
from cuepost.domain.audit import Action
from cuepost.domain.errors import EmailTaken, NotFound, WrongCredentials
from cuepost.domain.person import (
    LINK_LIFE,
    OPAQUE_TOKEN_BYTES,
    SESSION_LIFE,
    PasswordSignInOff,
    Session,
    SignInLink,
    User,
    checked_email,
    checked_password,
    compose_opaque_token,
    opaque_token_digest,
)
from cuepost.domain.portal import ManagedByHost, PortalLink
from cuepost.ports.passwords import Passwords
from cuepost.ports.store import Transaction
from cuepost.ports.system import Clock, Entropy, IdSource


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A signed-in user, with the caller for the use cases.

    `portal` is the link by which a host product opened the session.
    """

    caller: Caller
    user: User
    account: Account
    session: Session
    portal: PortalLink | None = None


@dataclass(frozen=True, slots=True)
class NewSession:
    """`token` is only for the cookie."""

    user: User
    token: str
    expires_at: datetime

    def __repr__(self) -> str:
        return f"NewSession({self.user.id})"


@dataclass(frozen=True, slots=True)
class NewLink:
    url: str
    expires_at: datetime

    def __repr__(self) -> str:
        return f"NewLink(expires_at={self.expires_at})"


@dataclass(frozen=True, slots=True)
class SignIn:
    perform: Perform
    clock: Clock
    ids: IdSource
    entropy: Entropy
    audit: AuditTrail
    passwords: Passwords
    limits: SignInLimits
    address: Callable[[str], str]
    allows_passwords: bool = True

    async def make_link(
        self,
        transaction: Transaction,
        caller: Caller,
        account_id: UUID,
        user_id: UUID | None = None,
    ) -> NewLink:
        """For that member, or for the account's first owner, who is created if there is none."""
        now, token = self.clock.now(), compose_opaque_token(self.entropy(OPAQUE_TOKEN_BYTES))
        account = await transaction.accounts.lock(account_id)
        if account is None:
            raise NotFound
        account.require_live()
        user = await self._linked(transaction, account_id, user_id)
        expires_at = now + LINK_LIFE
        link = SignInLink(
            account_id, self.ids(now), user.id, opaque_token_digest(token), expires_at
        )
        await transaction.sign_in_links.add(link)
        await self.audit.note(transaction, caller, Action.LINK_MADE, account_id, user.id)
        return NewLink(self.address(token), expires_at)

    async def _linked(
        self, transaction: Transaction, account_id: UUID, user_id: UUID | None
    ) -> User:
        if user_id is not None:
            user = await transaction.users.get(account_id, user_id)
            if user is None:
                raise NotFound
            return user
        owners = await transaction.users.owners(account_id)
        if owners:
            return owners[0]
        now = self.clock.now()
        first = User(account_id, self.ids(now), now)
        await transaction.users.add(first)
        return first

    async def needs_link(self, transaction: Transaction, account_id: UUID) -> bool:
        """Whether no owner of the account could sign in without one."""
        account = await transaction.accounts.get(account_id)
        if account is None or account.state is not AccountState.LIVE:
            return False
        owners = await transaction.users.owners(account_id)
        return not any(user.can_sign_in_alone(self.allows_passwords) for user in owners)

    async def link(self, transaction: Transaction, token: str) -> SignInLink:
        """Does not use the link up, because browsers and chat programs prefetch links."""
        found = await transaction.sign_in_links.find(opaque_token_digest(token))
        if found is None or found.expires_at <= self.clock.now():
            raise NotFound("This sign-in link was already used, or is older than a day.")
        return found

    async def by_link(
        self, transaction: Transaction, token: str, address: str | None
    ) -> NewSession:
        link = await self.link(transaction, token)
        user = await transaction.users.get(link.account_id, link.user_id)
        taken = await transaction.sign_in_links.take(link.account_id, link.id)
        if user is None or not taken:
            raise NotFound("This sign-in link was already used.")
        await self.end_all(transaction, user)
        return await self.open_session(transaction, user, address, by="link")

    async def by_password(self, email: str, password: str, address: str | None) -> NewSession:
        """Neither the error nor the duration shows whether the e-mail or the password is wrong."""
        self.require_passwords()
        email = email.strip().lower()
        async with self.limits.attempt(email, address) as attempt:
            user = await self.perform.read(lambda transaction: transaction.users.by_email(email))
            known_hash = user.password_hash if user else None
            if not await self.passwords.matches(password, known_hash):
                if user is not None:
                    await self._note_refusal(user, address)
                raise WrongCredentials
            attempt.give_back()
        assert user is not None

        async def open_session(transaction: Transaction) -> NewSession:
            # The password may have been changed since it was read.
            await transaction.accounts.lock(user.account_id)
            current = await transaction.users.get(user.account_id, user.id)
            if current is None or current.password_hash != known_hash:
                raise WrongCredentials
            return await self.open_session(transaction, current, address, by="password")

        return await self.perform.change(open_session)

    async def signed_in(
        self, transaction: Transaction, token: str, address: str | None
    ) -> SignedIn:
        """Raises NotFound if the session has ended or never existed."""
        session = await transaction.sessions.find(opaque_token_digest(token))
        if session is None or not session.is_live(self.clock.now()):
            raise NotFound
        user = await transaction.users.get(session.account_id, session.user_id)
        account = await transaction.accounts.get(session.account_id)
        if user is None or account is None or account.state is AccountState.ARRIVING:
            raise NotFound
        if account.erasing_since is not None:
            raise NotFound
        caller = caller_of(user, address, webhooks_enabled=account.webhooks_enabled)
        portal = None
        if session.by_portal:
            portal = await transaction.portal_links.get(session.account_id, session.id)
        return SignedIn(caller, user, account, session, portal)

    async def sign_out(self, transaction: Transaction, signed_in: SignedIn) -> None:
        session = signed_in.session
        await transaction.sessions.end(session.account_id, session.id)
        await self.audit.note(
            transaction, signed_in.caller, Action.SIGNED_OUT, session.account_id, session.user_id
        )

    async def change_credentials(
        self, signed_in: SignedIn, email: str, password: str, current_password: str
    ) -> NewSession:
        """Ends every session and link of the user and opens a new session.

        A user who has a password must enter it, unless they just signed in with a one-time link.
        """
        self.require_passwords()
        user, account_id = signed_in.user, signed_in.account.id
        if signed_in.session.by_portal:
            raise ManagedByHost
        email, password = checked_email(email), checked_password(password)
        if self.asks_for_password(signed_in):
            await self._require_password(signed_in, current_password)
        changed = user.with_credentials(email, await self.passwords.hashed(password))

        async def change(transaction: Transaction) -> NewSession:
            # Serialised with sign-ins, so that none with the old password opens a session later.
            await transaction.accounts.lock(account_id)
            if await transaction.sessions.find(signed_in.session.digest) is None:
                raise NotFound("Your session has ended; sign in again.")
            holder = await transaction.users.by_email(email)
            if holder is not None and holder.id != user.id:
                raise EmailTaken
            await transaction.users.save_credentials(changed)
            await self.end_all(transaction, user)
            await self.audit.note(
                transaction, signed_in.caller, Action.CREDENTIALS_CHANGED, account_id, user.id
            )
            return await self._new_session(transaction, changed)

        return await self.perform.change_by(signed_in.caller, change)

    def require_passwords(self) -> None:
        if not self.allows_passwords:
            raise PasswordSignInOff

    def asks_for_password(self, signed_in: SignedIn) -> bool:
        """Whether the current password is needed to choose another one."""
        replaces = signed_in.session.may_replace_password(self.clock.now())
        return signed_in.user.password_hash is not None and not replaces

    async def _require_password(self, signed_in: SignedIn, password: str) -> None:
        user = signed_in.user
        async with self.limits.attempt(str(user.id), signed_in.caller.address) as attempt:
            if not await self.passwords.matches(password, user.password_hash):
                raise WrongCredentials("The current password is wrong.")
            attempt.give_back()

    async def end_all(self, transaction: Transaction, user: User) -> None:
        """End all sessions and unused links of the user, which another person may have."""
        await transaction.sessions.end_of_user(user.account_id, user.id)
        await transaction.sign_in_links.end_of_user(user.account_id, user.id)

    async def open_session(
        self,
        transaction: Transaction,
        user: User,
        address: str | None,
        *,
        by: str,
        session_id: UUID | None = None,
        life: timedelta = SESSION_LIFE,
        issuer: str | None = None,
    ) -> NewSession:
        await require_live(transaction, user.account_id)
        made = await self._new_session(
            transaction, user, by_link=by == "link", session_id=session_id, life=life
        )
        details = {"by": by} if issuer is None else {"by": by, "issuer": issuer}
        caller = caller_of(user, address, webhooks_enabled=False)
        await self.audit.note(
            transaction, caller, Action.SIGNED_IN, user.account_id, user.id, **details
        )
        return made

    async def _new_session(
        self,
        transaction: Transaction,
        user: User,
        *,
        by_link: bool = False,
        session_id: UUID | None = None,
        life: timedelta = SESSION_LIFE,
    ) -> NewSession:
        now, token = self.clock.now(), compose_opaque_token(self.entropy(OPAQUE_TOKEN_BYTES))
        expires_at, made_id = now + life, session_id or self.ids(now)
        digest = opaque_token_digest(token)
        session = Session(user.account_id, made_id, user.id, digest, now, expires_at, by_link)
        await transaction.sessions.add(session)
        return NewSession(user, token, expires_at)

    async def _note_refusal(self, user: User, address: str | None) -> None:
        caller = caller_of(user, address, webhooks_enabled=False)
        await self.perform.change(
            lambda transaction: self.audit.note(
                transaction, caller, Action.SIGN_IN_REFUSED, user.account_id, user.id
            )
        )
