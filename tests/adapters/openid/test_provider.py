"""A provider over HTTP: what is fetched when, and which answers are believed."""

import asyncio
import ssl
import threading
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import jwt
import pytest

from cuepost.adapters.openid import fetching, provider
from cuepost.adapters.openid.provider import OpenIdClient, OpenIdProvider
from cuepost.domain.id_token import Claims, TokenRefused
from cuepost.ports.identity_provider import (
    AuthorizationRequest,
    AuthorizationResponse,
    ProviderUnavailable,
)
from cuepost.testing import VirtualClock
from tests.support.openid_issuer import (
    CLIENT_ID,
    CLIENT_SECRET,
    EC_KEY,
    ED_KEY,
    RSA_KEY,
    UNKNOWN_KEY,
    LocalIssuer,
    public_jwk,
)

BACK = "https://cuepost.example.com/sign-in/openid/callback"
# The S256 challenge of the verifier of RFC 7636, appendix B.
VERIFIER = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
CHALLENGE = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
DISCOVERY = "/.well-known/openid-configuration"


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def issuer(clock: VirtualClock) -> Iterator[LocalIssuer]:
    with LocalIssuer(clock) as running:
        yield running


@pytest.fixture
async def subject(issuer: LocalIssuer, clock: VirtualClock) -> AsyncIterator[OpenIdProvider]:
    client = OpenIdClient(issuer.url, CLIENT_ID, CLIENT_SECRET, BACK, ("openid", "email"))
    made = OpenIdProvider(client, clock, ssl.create_default_context())
    yield made
    await made.close()


async def claims_of(
    subject: OpenIdProvider, issuer: LocalIssuer, nonce: str = "n", **claims: Any
) -> Claims:
    url = await subject.authorization_url(AuthorizationRequest("s", "n", CHALLENGE))
    parameters = issuer.consent(url, **({"sub": "ada"} | claims))
    return await subject.claims(AuthorizationResponse(parameters, nonce, VERIFIER))


async def refusal(subject: OpenIdProvider, issuer: LocalIssuer, **claims: Any) -> str:
    with pytest.raises(TokenRefused) as caught:
        await claims_of(subject, issuer, **claims)
    return str(caught.value)


async def unavailable(subject: OpenIdProvider) -> str:
    with pytest.raises(ProviderUnavailable) as caught:
        await subject.check()
    return str(caught.value)


async def test_a_code_is_exchanged_for_verified_claims(
    subject: OpenIdProvider, issuer: LocalIssuer
) -> None:
    claims = await claims_of(subject, issuer, org="acme")
    assert (claims["sub"], claims["org"]) == ("ada", "acme")


async def test_the_documents_are_fetched_once_in_an_hour(
    subject: OpenIdProvider, issuer: LocalIssuer, clock: VirtualClock
) -> None:
    await asyncio.gather(*(claims_of(subject, issuer) for _ in range(5)))
    assert (issuer.seen.count(DISCOVERY), issuer.seen.count("/jwks")) == (1, 1)
    clock.advance(hours=1)
    await claims_of(subject, issuer)
    assert (issuer.seen.count(DISCOVERY), issuer.seen.count("/jwks")) == (2, 2)


async def test_a_provider_may_want_the_secret_in_the_form(
    subject: OpenIdProvider, issuer: LocalIssuer
) -> None:
    issuer.discovery["token_endpoint_auth_methods_supported"] = ["client_secret_post"]
    assert (await claims_of(subject, issuer))["sub"] == "ada"


@pytest.mark.parametrize(
    ("key", "algorithm"),
    [(RSA_KEY, "RS256"), (RSA_KEY, "PS512"), (EC_KEY, "ES256"), (ED_KEY, "EdDSA")],
)
async def test_asymmetric_algorithms_are_believed(
    subject: OpenIdProvider, issuer: LocalIssuer, key: Any, algorithm: str
) -> None:
    issuer.keys = [public_jwk(key, None), {"kty": "oct", "k": "AAAA"}, {"kty": "unknown"}]
    issuer.encode = lambda claims: jwt.encode(claims, key, algorithm)
    assert (await claims_of(subject, issuer))["sub"] == "ada"


async def test_a_token_without_a_signature_is_refused(
    subject: OpenIdProvider, issuer: LocalIssuer
) -> None:
    issuer.encode = lambda claims: jwt.encode(claims, "", "none", {"kid": "rsa"})
    assert await refusal(subject, issuer) == "its algorithm is not allowed"


async def test_a_token_signed_with_the_secret_of_the_client_is_refused(
    subject: OpenIdProvider, issuer: LocalIssuer
) -> None:
    secret = CLIENT_SECRET.ljust(32)
    issuer.keys.append({"kty": "oct", "kid": "hmac", "k": "YQ"})
    issuer.encode = lambda claims: jwt.encode(claims, secret, "HS256", {"kid": "hmac"})
    assert await refusal(subject, issuer) == "its algorithm is not allowed"


@pytest.mark.parametrize("kid", ["rsa", "other"])
async def test_a_token_of_another_key_is_refused(
    subject: OpenIdProvider, issuer: LocalIssuer, kid: str
) -> None:
    issuer.encode = lambda claims: jwt.encode(claims, UNKNOWN_KEY, "RS256", {"kid": kid})
    assert (
        await refusal(subject, issuer)
        == {
            "rsa": "its signature: InvalidSignatureError",
            "other": "it is signed with an unknown key",
        }[kid]
    )


async def test_a_key_of_another_use_or_algorithm_is_refused(
    subject: OpenIdProvider, issuer: LocalIssuer, clock: VirtualClock
) -> None:
    for changed in ({"use": "enc"}, {"alg": "RS512"}, {"key_ops": ["encrypt"]}):
        issuer.keys = [public_jwk(RSA_KEY, "rsa") | changed, public_jwk(EC_KEY, "ec")]
        assert await refusal(subject, issuer) == "it is signed with an unknown key"
        clock.advance(hours=1)


async def test_a_key_that_is_too_short_is_refused(
    subject: OpenIdProvider, issuer: LocalIssuer
) -> None:
    issuer.keys = [{"kty": "RSA", "kid": "rsa", "n": "qg" * 80, "e": "AQAB"}]
    assert await refusal(subject, issuer) == "its signature: InvalidKeyError"


@pytest.mark.parametrize("token", ["", "a.b.c", "x" * 70_000, "e30.e30."])
async def test_what_is_no_token_is_refused(
    subject: OpenIdProvider, issuer: LocalIssuer, token: str
) -> None:
    issuer.encode = lambda _: token
    assert await refusal(subject, issuer)


async def test_the_claims_must_be_of_this_sign_in(
    subject: OpenIdProvider, issuer: LocalIssuer
) -> None:
    assert await refusal(subject, issuer, nonce="other") == (
        "the nonce is not the one of this sign-in"
    )
    assert await refusal(subject, issuer, iss="https://other") == "the issuer is another one"
    assert await refusal(subject, issuer, aud="other") == "the audience is another client"
    assert await refusal(subject, issuer, exp=1) == "it has expired"


async def test_new_keys_are_fetched_for_an_unknown_one_but_not_often(
    subject: OpenIdProvider, issuer: LocalIssuer, clock: VirtualClock
) -> None:
    await claims_of(subject, issuer)
    issuer.keys = [public_jwk(EC_KEY, "new")]
    issuer.encode = lambda claims: jwt.encode(claims, EC_KEY, "ES256", {"kid": "new"})
    assert await refusal(subject, issuer) == "it is signed with an unknown key"
    assert issuer.seen.count("/jwks") == 1
    clock.advance(seconds=30)
    await claims_of(subject, issuer)
    assert issuer.seen.count("/jwks") == 2
    issuer.encode = lambda claims: jwt.encode(claims, EC_KEY, "ES256", {"kid": "newer"})
    for _ in range(5):
        assert await refusal(subject, issuer) == "it is signed with an unknown key"
    assert issuer.seen.count("/jwks") == 2


async def test_a_response_of_another_issuer_is_refused_before_its_code_is_used(
    subject: OpenIdProvider, issuer: LocalIssuer
) -> None:
    url = await subject.authorization_url(AuthorizationRequest("s", "n", CHALLENGE))
    parameters = issuer.consent(url, sub="ada")
    for changed in ({"iss": "https://other.example"}, {"iss": ""}):
        response = AuthorizationResponse(parameters | changed, "n", VERIFIER)
        with pytest.raises(TokenRefused, match="the response is of another issuer"):
            await subject.claims(response)
    assert "/token" not in issuer.seen
    own = AuthorizationResponse(parameters | {"iss": issuer.url}, "n", VERIFIER)
    assert (await subject.claims(own))["sub"] == "ada"


async def test_a_provider_that_names_itself_must_always_do_so(
    subject: OpenIdProvider, issuer: LocalIssuer
) -> None:
    issuer.discovery["authorization_response_iss_parameter_supported"] = True
    assert await refusal(subject, issuer) == "the response is of another issuer"


async def test_a_code_that_the_provider_refuses_gives_nothing(
    subject: OpenIdProvider, issuer: LocalIssuer
) -> None:
    await subject.check()
    response = AuthorizationResponse({"code": "used"}, "n", VERIFIER)
    with pytest.raises(ProviderUnavailable, match=r"/token: status 400 'invalid_grant'$"):
        await subject.claims(response)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"issuer": "https://other.example"}, "of another issuer"),
        ({"issuer": None}, "of another issuer"),
        ({"token_endpoint": None}, "no usable token_endpoint"),
        ({"jwks_uri": "http://192.0.2.1/jwks"}, "no usable jwks_uri"),
        ({"jwks_uri": "file:///etc/passwd"}, "no usable jwks_uri"),
        ({"authorization_endpoint": "javascript:x"}, "no usable authorization_endpoint"),
        ({"authorization_endpoint": "https://[::1"}, "no usable authorization_endpoint"),
    ],
)
async def test_a_discovery_document_must_be_of_the_issuer_and_lead_to_tls(
    subject: OpenIdProvider, issuer: LocalIssuer, changed: dict[str, Any], why: str
) -> None:
    issuer.discovery |= changed
    assert why in await unavailable(subject)


async def test_there_must_be_a_key(subject: OpenIdProvider, issuer: LocalIssuer) -> None:
    issuer.keys = [{"kty": "oct", "k": "AAAA"}, {"kty": ["RSA"]}, "rsa"]  # type: ignore[list-item]
    assert "there is no key" in await unavailable(subject)


def redirect(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(302)
    handler.send_header("location", "/jwks")
    handler.send_header("content-length", "0")
    handler.end_headers()


def endless(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.end_headers()
    try:
        for _ in range(fetching.MOST_BYTES // 1_000 + 100):
            handler.wfile.write(b" " * 1_000)
    except OSError:
        pass


def text(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("content-length", "5")
    handler.end_headers()
    handler.wfile.write(b"hello")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (redirect, "status 302"),
        (endless, f"the answer is longer than {fetching.MOST_BYTES} bytes"),
        (text, "the answer is not a JSON object"),
    ],
)
async def test_redirects_long_answers_and_other_content_are_refused(
    subject: OpenIdProvider, issuer: LocalIssuer, answer: Any, why: str
) -> None:
    issuer.responses[DISCOVERY] = answer
    assert (await unavailable(subject)).endswith(why)
    assert issuer.seen == [DISCOVERY]


async def test_a_slow_provider_costs_a_bounded_time(
    subject: OpenIdProvider, issuer: LocalIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider, "STEP_SECONDS", 0.2)
    release = threading.Event()
    issuer.responses[DISCOVERY] = lambda _: _wait(release)
    assert await unavailable(subject) == "no answer within 0.2 s"
    release.set()


async def test_a_failure_is_repeated_for_two_seconds_without_a_request(
    subject: OpenIdProvider, issuer: LocalIssuer, clock: VirtualClock
) -> None:
    issuer.responses[DISCOVERY] = text
    first = await unavailable(subject)
    assert await unavailable(subject) == first
    assert issuer.seen == [DISCOVERY]
    issuer.responses.clear()
    clock.advance(seconds=2)
    assert await subject.check() == 1


async def test_proxies_of_the_environment_are_not_used(
    issuer: LocalIssuer, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    client = OpenIdClient(issuer.url, CLIENT_ID, CLIENT_SECRET, BACK, ("openid",))
    made = OpenIdProvider(client, clock, ssl.create_default_context())
    assert await made.check() == 1
    await made.close()


async def test_a_provider_that_does_not_listen_is_unavailable(clock: VirtualClock) -> None:
    client = OpenIdClient("http://127.0.0.1:9", CLIENT_ID, CLIENT_SECRET, BACK, ("openid",))
    made = OpenIdProvider(client, clock, ssl.create_default_context())
    assert (await unavailable(made)).startswith(f"http://127.0.0.1:9{DISCOVERY}: ConnectError")
    await made.close()
    assert CLIENT_SECRET not in repr(client)


def _wait(release: threading.Event) -> None:
    release.wait(30)
