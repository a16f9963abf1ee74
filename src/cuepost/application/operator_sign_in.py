"""Signing in to the operator's pages with an operator key.

A session belongs to its key: it is kept under the operator's id as account, with the key as user,
so that no member's session is one of these. The key is read again at every request.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from cuepost.application.perform import OPERATOR
from cuepost.application.sign_in import SignIn
from cuepost.domain.access import ApiKey, Caller, Interface, KeyKind, Scope, key_id_in, kind_of
from cuepost.domain.audit import Action
from cuepost.domain.errors import NotFound, WrongCredentials
from cuepost.domain.person import (
    OPAQUE_TOKEN_BYTES,
    Session,
    compose_opaque_token,
    opaque_token_digest,
)
from cuepost.ports.store import Transaction

SESSION_LIFE = timedelta(hours=12)
REFUSED = "This is not a valid operator key with the scope accounts:read."


@dataclass(frozen=True, slots=True)
class OperatorSession:
    """A signed-in operator, with the caller for the use cases."""

    caller: Caller
    key: ApiKey
    session: Session


@dataclass(frozen=True, slots=True)
class NewOperatorSession:
    """`token` is only for the cookie."""

    token: str
    expires_at: datetime

    def __repr__(self) -> str:
        return f"NewOperatorSession(expires_at={self.expires_at})"


@dataclass(frozen=True, slots=True)
class OperatorSignIn:
    sign_in: SignIn

    async def by_key(self, token: str, address: str | None) -> NewOperatorSession:
        """Attempts are limited per key and per client, as those with a password are."""
        key_id = key_id_in(token)
        async with self.sign_in.limits.attempt(f"operator key {key_id}", address) as attempt:
            key = None
            if key_id is not None:
                key = await self.sign_in.perform.read(
                    lambda transaction: transaction.keys.get(key_id)
                )
            if (
                key is None
                or not key.accepts(token, self.sign_in.clock.now())
                or not _may_watch(key)
            ):
                if key is not None:
                    await self._note_refusal(key, address)
                raise WrongCredentials(REFUSED)
            attempt.give_back()
        accepted = key
        return await self.sign_in.perform.change(
            lambda transaction: self._open(transaction, accepted, address)
        )

    async def signed_in(
        self, transaction: Transaction, token: str, address: str | None
    ) -> OperatorSession:
        """Raises NotFound once the session has ended, or its key has expired or was revoked."""
        session, now = (
            await transaction.sessions.find(opaque_token_digest(token)),
            self.sign_in.clock.now(),
        )
        if session is None or session.account_id != OPERATOR or not session.is_live(now):
            raise NotFound
        key = await transaction.keys.get(session.user_id)
        if key is None or not key.is_usable(now) or not _may_watch(key):
            raise NotFound
        return OperatorSession(_caller(key, address), key, session)

    async def sign_out(self, transaction: Transaction, signed_in: OperatorSession) -> None:
        await transaction.sessions.end(OPERATOR, signed_in.session.id)
        await self.sign_in.audit.note(
            transaction, signed_in.caller, Action.SIGNED_OUT, OPERATOR, signed_in.key.id
        )

    async def _open(
        self, transaction: Transaction, key: ApiKey, address: str | None
    ) -> NewOperatorSession:
        now, token = (
            self.sign_in.clock.now(),
            compose_opaque_token(self.sign_in.entropy(OPAQUE_TOKEN_BYTES)),
        )
        expires_at = now + SESSION_LIFE
        if key.expires_at is not None:
            expires_at = min(expires_at, key.expires_at)
        digest = opaque_token_digest(token)
        await transaction.sessions.add(
            Session(OPERATOR, self.sign_in.ids(now), key.id, digest, now, expires_at)
        )
        await transaction.keys.touch(key.id, now)
        await self.sign_in.audit.note(
            transaction, _caller(key, address), Action.SIGNED_IN, OPERATOR, key.id, by="key"
        )
        return NewOperatorSession(token, expires_at)

    async def _note_refusal(self, key: ApiKey, address: str | None) -> None:
        trail = key.account_id or OPERATOR
        await self.sign_in.perform.change(
            lambda transaction: self.sign_in.audit.note(
                transaction, _caller(key, address), Action.SIGN_IN_REFUSED, trail, key.id
            )
        )


def _may_watch(key: ApiKey) -> bool:
    caller = _caller(key, None)
    return kind_of(key.scopes) is KeyKind.OPERATOR and caller.may(Scope.ACCOUNTS_READ)


def _caller(key: ApiKey, address: str | None) -> Caller:
    return Caller(
        interface=Interface.PAGES,
        actor=f"key:{key.id}",
        account_id=None,
        scopes=key.scopes,
        address=address,
        id=key.id,
        name=key.name,
    )
