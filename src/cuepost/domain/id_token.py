"""Whether the claims of an id token, whose signature was verified, may be believed."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

Claims = Mapping[str, object]

# How far the clocks of the provider and of the service may be apart.
LEEWAY = timedelta(seconds=60)
LONGEST_SUBJECT = 255


class TokenRefused(Exception):
    """The id token cannot be believed; the message is for the log and names no claim's value."""


@dataclass(frozen=True, slots=True)
class ExpectedToken:
    issuer: str
    client_id: str
    nonce: str


def require_believable(claims: Claims, expected: ExpectedToken, now: datetime) -> None:
    """The checks of OpenID Connect Core 1.0, section 3.1.3.7, apart from the signature."""
    if claims.get("iss") != expected.issuer:
        raise TokenRefused("the issuer is another one")
    _require_audience(claims, expected.client_id)
    _require_times(claims, now.timestamp())
    if claims.get("nonce") != expected.nonce:
        raise TokenRefused("the nonce is not the one of this sign-in")
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject) <= LONGEST_SUBJECT:
        raise TokenRefused("it names no subject")


def _require_audience(claims: Claims, client_id: str) -> None:
    audience = claims.get("aud")
    audiences = audience if isinstance(audience, list) else [audience]
    if client_id not in audiences:
        raise TokenRefused("the audience is another client")
    if claims.get("azp", None if len(audiences) > 1 else client_id) != client_id:
        raise TokenRefused("it was issued to another client")


def _require_times(claims: Claims, now: float) -> None:
    leeway = LEEWAY.total_seconds()
    if _seconds(claims, "exp") <= now - leeway:
        raise TokenRefused("it has expired")
    if _seconds(claims, "iat") > now + leeway:
        raise TokenRefused("it was issued in the future")
    if "nbf" in claims and _seconds(claims, "nbf") > now + leeway:
        raise TokenRefused("it is not valid yet")


def _seconds(claims: Claims, name: str) -> float:
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TokenRefused(f"{name} is not a number")
    return value
