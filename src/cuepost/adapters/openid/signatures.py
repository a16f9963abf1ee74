"""Signatures of id tokens: only asymmetric algorithms, only with the provider's own keys."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import jwt
from jwt.api_jws import PyJWS

from cuepost.domain.id_token import Claims, TokenRefused

# By the type of the key: a token can choose among these, and never `none` or an HMAC.
ALGORITHMS: Mapping[str, frozenset[str]] = {
    "RSA": frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}),
    "EC": frozenset({"ES256", "ES384", "ES512"}),
    "OKP": frozenset({"EdDSA"}),
}
LONGEST_TOKEN = 64 * 1024
MOST_KEYS = 100

Key = Mapping[str, Any]
_JWS = PyJWS(options={"enforce_minimum_key_length": True})


class UnknownKey(Exception):
    """The token names a key that is not among these; the provider may have changed its keys."""


def signing_keys(document: Mapping[str, Any]) -> Sequence[Key]:
    """The keys of a JWKS that may sign; keys of other kinds are left out."""
    listed = document.get("keys")
    keys = listed[:MOST_KEYS] if isinstance(listed, list) else []
    return [key for key in keys if isinstance(key, dict) and _may_sign(key)]


def _may_sign(key: Key) -> bool:
    operations = key.get("key_ops", ["verify"])
    return (
        any(key.get("kty") == kind for kind in ALGORITHMS)
        and key.get("use", "sig") == "sig"
        and isinstance(operations, list)
        and "verify" in operations
    )


def verified_claims(token: str, keys: Sequence[Key]) -> Claims:
    """Raises UnknownKey and TokenRefused."""
    if len(token) > LONGEST_TOKEN:
        raise TokenRefused("it is too long")
    try:
        header = _JWS.get_unverified_header(token)
        algorithm = str(header.get("alg"))
        if not any(algorithm in names for names in ALGORITHMS.values()):
            raise TokenRefused("its algorithm is not allowed")
        key = _key_for(header, algorithm, keys)
        payload = _JWS.decode(token, jwt.PyJWK(dict(key), algorithm).key, algorithms=[algorithm])
        claims = json.loads(payload)
    except (jwt.PyJWTError, ValueError, RecursionError) as error:
        raise TokenRefused(f"its signature: {type(error).__name__}") from None
    if not isinstance(claims, dict):
        raise TokenRefused("it has no claims")
    return claims


def _key_for(header: Mapping[str, Any], algorithm: str, keys: Sequence[Key]) -> Key:
    """The key that the token names; without a name there must be only one that fits."""
    fitting = [
        key
        for key in keys
        if algorithm in ALGORITHMS[key["kty"]] and key.get("alg", algorithm) == algorithm
    ]
    if "kid" in header:
        fitting = [key for key in fitting if key.get("kid") == header["kid"]]
    if len(fitting) != 1:
        raise UnknownKey
    return fitting[0]
