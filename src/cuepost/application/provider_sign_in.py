"""Signing in with an OpenID provider: the way there, the way back, and the member it leads to."""

import hashlib
import hmac
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from cuepost.application.admit_identity import AdmitIdentity
from cuepost.application.sign_in import NewSession, SignedIn, SignIn
from cuepost.domain.id_token import Claims, TokenRefused
from cuepost.domain.identity import IdentityRules, identity_of
from cuepost.domain.person import OPAQUE_TOKEN_BYTES, compose_opaque_token
from cuepost.domain.portal import ManagedByHost
from cuepost.ports.identity_provider import (
    AuthorizationRequest,
    AuthorizationResponse,
    IdentityProvider,
    ProviderUnavailable,
)
from cuepost.ports.system import CannotOpen, SecretBox

# A person may have to enter a password and a second factor at the provider.
PENDING_LIFE = timedelta(minutes=10)
LONGEST_PATH = 1_000
SEAL_CONTEXT = b"sign-in with a provider"


class FailureReason(StrEnum):
    NOT_STARTED = "not_started"
    CANCELLED = "cancelled"
    PROVIDER_ERROR = "provider_error"
    UNAVAILABLE = "unavailable"
    TOKEN_REFUSED = "token_refused"


class ProviderSignInFailed(Exception):
    """`detail` is for the log; the pages have a sentence for each reason."""

    def __init__(self, reason: FailureReason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class StartedSignIn:
    """`sealed` is the cookie that binds the sign-in to the browser."""

    url: str
    sealed: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class FinishedSignIn:
    session: NewSession
    path: str
    has_connected: bool


@dataclass(frozen=True, slots=True, repr=False)
class _Pending:
    """`member_id` is the member to connect with the identity, if one is signed in for that."""

    state: str
    nonce: str
    verifier: str
    path: str
    member_id: UUID | None
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class SignInWithProvider:
    """`name` is what people call the provider."""

    sign_in: SignIn
    provider: IdentityProvider
    box: SecretBox
    rules: IdentityRules
    name: str

    async def start(self, path: str, member_id: UUID | None = None) -> StartedSignIn:
        """`path` is the page of this site to show afterwards."""
        path = path if len(path) <= LONGEST_PATH and path.isascii() else ""
        state, nonce, verifier = (self._random() for _ in range(3))
        until = self.sign_in.clock.now() + PENDING_LIFE
        pending = _Pending(state, nonce, verifier, path, member_id, until)
        challenge = urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=")
        request = AuthorizationRequest(state, nonce, challenge.decode())
        try:
            url = await self.provider.authorization_url(request)
        except ProviderUnavailable as error:
            raise ProviderSignInFailed(FailureReason.UNAVAILABLE, str(error)) from None
        return StartedSignIn(url, self._sealed(pending))

    async def connect(self, signed_in: SignedIn, path: str) -> StartedSignIn:
        """To use the provider as this member from then on."""
        if signed_in.session.by_portal:
            raise ManagedByHost
        return await self.start(path, signed_in.user.id)

    async def finish(
        self,
        parameters: Mapping[str, str],
        sealed: str,
        address: str | None,
        signed_in: SignedIn | None = None,
    ) -> FinishedSignIn:
        """Raises ProviderSignInFailed and Refused; then nothing has changed."""
        pending = self._opened(sealed, parameters.get("state", ""))
        member_id = signed_in.user.id if signed_in is not None else None
        if pending.member_id is not None and pending.member_id != member_id:
            raise _not_started("the member has signed out")
        limits, admit = self.sign_in.limits, AdmitIdentity(self.sign_in)
        async with limits.attempt(None, address) as attempt:
            if not await limits.is_first_use(pending.state):
                raise _not_started("the response was used before")
            try:
                claims = await self._claims(parameters, pending)
            except ProviderUnavailable as error:
                attempt.give_back()
                raise ProviderSignInFailed(FailureReason.UNAVAILABLE, str(error)) from None
            identity = identity_of(claims, self.rules)
            session = await self.sign_in.perform.change(
                lambda change: admit.admit(change, identity, address, pending.member_id)
            )
            attempt.give_back()
        return FinishedSignIn(session, pending.path, pending.member_id is not None)

    async def _claims(self, parameters: Mapping[str, str], pending: _Pending) -> Claims:
        error = parameters.get("error")
        if error == "access_denied":
            raise ProviderSignInFailed(FailureReason.CANCELLED, "access_denied")
        if error is not None:
            raise ProviderSignInFailed(FailureReason.PROVIDER_ERROR, repr(error[:50]))
        response = AuthorizationResponse(parameters, pending.nonce, pending.verifier)
        try:
            return await self.provider.claims(response)
        except TokenRefused as refused:
            raise ProviderSignInFailed(FailureReason.TOKEN_REFUSED, str(refused)) from None

    def _random(self) -> str:
        return compose_opaque_token(self.sign_in.entropy(OPAQUE_TOKEN_BYTES))

    def _sealed(self, pending: _Pending) -> str:
        plain = json.dumps(
            [
                pending.state,
                pending.nonce,
                pending.verifier,
                pending.path,
                pending.member_id.hex if pending.member_id else None,
                pending.expires_at.isoformat(),
            ]
        )
        return urlsafe_b64encode(self.box.seal(plain.encode(), SEAL_CONTEXT)).decode()

    def _opened(self, sealed: str, state: str) -> _Pending:
        if not sealed:
            raise _not_started("the browser sent no cookie")
        try:
            plain = self.box.open(urlsafe_b64decode(sealed.encode()), SEAL_CONTEXT)
        except (CannotOpen, ValueError):
            raise _not_started("the cookie cannot be opened") from None
        known, nonce, verifier, path, member_id, until = json.loads(plain)
        if not hmac.compare_digest(known.encode(), state.encode("utf-8", "replace")):
            raise _not_started("the state is not that of the browser")
        expires_at = datetime.fromisoformat(until)
        if expires_at <= self.sign_in.clock.now():
            raise _not_started("it took too long")
        member = UUID(hex=member_id) if member_id else None
        return _Pending(known, nonce, verifier, path, member, expires_at)


def _not_started(detail: str) -> ProviderSignInFailed:
    return ProviderSignInFailed(FailureReason.NOT_STARTED, detail)
