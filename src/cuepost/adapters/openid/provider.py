"""A provider of OpenID Connect: authorization code flow with PKCE, for a client with a secret."""

import asyncio
import ssl
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote_plus, urlencode

from cuepost.adapters.openid.discovery import Discovered, discovered, discovery_url
from cuepost.adapters.openid.fetching import JsonClient
from cuepost.adapters.openid.signatures import Key, UnknownKey, signing_keys, verified_claims
from cuepost.domain.id_token import Claims, ExpectedToken, TokenRefused, require_believable
from cuepost.ports.identity_provider import (
    AuthorizationRequest,
    AuthorizationResponse,
    ProviderUnavailable,
)
from cuepost.ports.system import Clock

# All requests of one step of a sign-in together; less than CUEPOST_REQUEST_TIMEOUT.
STEP_SECONDS = 5.0
DOCUMENT_SECONDS = 3_600.0
# A token with an unknown key has the keys fetched again, but no more often than this.
LEAST_BETWEEN_FETCHES = 30.0
FAILURE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class OpenIdClient:
    """What the provider knows of this service."""

    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    redirect_uri: str
    scopes: Sequence[str]


@dataclass(frozen=True, slots=True)
class _Documents:
    discovered: Discovered
    keys: Sequence[Key]
    fetched_at: float


class OpenIdProvider:
    """Keeps discovery document and keys for an hour, and fetches them for all requests at once."""

    def __init__(self, client: OpenIdClient, clock: Clock, tls: ssl.SSLContext) -> None:
        self._client, self._clock = client, clock
        self._http = JsonClient(tls)
        self._documents: _Documents | None = None
        self._failure: tuple[float, str] | None = None
        self._fetching = asyncio.Lock()

    @property
    def issuer(self) -> str:
        return self._client.issuer

    async def close(self) -> None:
        await self._http.close()

    async def authorization_url(self, request: AuthorizationRequest) -> str:
        async with _bounded():
            endpoint = (await self._current()).discovered.authorization_endpoint
        query = {
            "response_type": "code",
            "client_id": self._client.client_id,
            "redirect_uri": self._client.redirect_uri,
            "scope": " ".join(self._client.scopes),
            "state": request.state,
            "nonce": request.nonce,
            "code_challenge": request.challenge,
            "code_challenge_method": "S256",
        }
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}"

    async def claims(self, response: AuthorizationResponse) -> Claims:
        async with _bounded():
            documents = await self._current()
            self._require_sender(response.parameters, documents.discovered)
            token = await self._id_token(response, documents.discovered)
            try:
                claims = verified_claims(token, documents.keys)
            except UnknownKey:
                claims = await self._with_newer_keys(token)
        expected = ExpectedToken(self.issuer, self._client.client_id, response.nonce)
        require_believable(claims, expected, self._clock.now())
        return claims

    async def check(self) -> int:
        """How many keys the provider has. Raises ProviderUnavailable."""
        async with _bounded():
            return len((await self._current()).keys)

    def _require_sender(self, parameters: Mapping[str, str], found: Discovered) -> None:
        """RFC 9207: the response may not come from another provider."""
        sender = parameters.get("iss")
        if sender is None and not found.names_itself:
            return
        if sender != self.issuer:
            raise TokenRefused("the response is of another issuer")

    async def _id_token(self, response: AuthorizationResponse, found: Discovered) -> str:
        client = self._client
        form = {
            "grant_type": "authorization_code",
            "code": response.parameters.get("code", ""),
            "redirect_uri": client.redirect_uri,
            "code_verifier": response.verifier,
        }
        headers = {}
        if found.secret_in_form:
            form |= {"client_id": client.client_id, "client_secret": client.client_secret}
        else:
            pair = f"{quote_plus(client.client_id)}:{quote_plus(client.client_secret)}"
            headers["authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
        answer = await self._http.post(found.token_endpoint, form, headers)
        token = answer.get("id_token")
        if not isinstance(token, str):
            raise TokenRefused("the provider sent no id token")
        return token

    async def _with_newer_keys(self, token: str) -> Claims:
        try:
            documents = await self._current(newest=LEAST_BETWEEN_FETCHES)
            return verified_claims(token, documents.keys)
        except UnknownKey:
            raise TokenRefused("it is signed with an unknown key") from None

    async def _current(self, newest: float = DOCUMENT_SECONDS) -> _Documents:
        """Documents that were fetched within that many seconds."""
        async with self._fetching:
            now, known = self._clock.monotonic(), self._documents
            if known is not None and now - known.fetched_at < newest:
                return known
            if self._failure is not None and now - self._failure[0] < FAILURE_SECONDS:
                raise ProviderUnavailable(self._failure[1])
            try:
                self._documents = await self._fetched()
            except ProviderUnavailable as error:
                self._failure = (self._clock.monotonic(), str(error))
                raise
            self._failure = None
            return self._documents

    async def _fetched(self) -> _Documents:
        document: dict[str, Any] = await self._http.get(discovery_url(self.issuer))
        found = discovered(self.issuer, document)
        keys = signing_keys(await self._http.get(found.jwks_uri))
        if not keys:
            raise ProviderUnavailable(f"{found.jwks_uri}: there is no key that can sign id tokens")
        return _Documents(found, keys, self._clock.monotonic())


@asynccontextmanager
async def _bounded() -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(STEP_SECONDS):
            yield
    except TimeoutError:
        raise ProviderUnavailable(f"no answer within {STEP_SECONDS:g} s") from None
