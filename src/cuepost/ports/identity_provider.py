"""An OpenID provider, with which members sign in."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from cuepost.domain.id_token import Claims


class ProviderUnavailable(Exception):
    """The provider did not answer, or not as OpenID Connect says; the message is for the log."""


@dataclass(frozen=True, slots=True)
class AuthorizationRequest:
    """`challenge` is the S256 code challenge of PKCE."""

    state: str
    nonce: str
    challenge: str


@dataclass(frozen=True, slots=True)
class AuthorizationResponse:
    """The parameters of the callback, and what they have to match."""

    parameters: Mapping[str, str] = field(repr=False)
    nonce: str = field(repr=False)
    verifier: str = field(repr=False)


class IdentityProvider(Protocol):
    @property
    def issuer(self) -> str: ...

    async def authorization_url(self, request: AuthorizationRequest) -> str:
        """Where the browser is sent. Raises ProviderUnavailable."""
        ...

    async def claims(self, response: AuthorizationResponse) -> Claims:
        """The verified claims of the id token. Raises ProviderUnavailable and TokenRefused."""
        ...
