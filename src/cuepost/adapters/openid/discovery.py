"""The discovery document of a provider."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from cuepost.ports.identity_provider import ProviderUnavailable

LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True, slots=True)
class Discovered:
    """`names_itself`: the provider adds `iss` to each response (RFC 9207)."""

    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    secret_in_form: bool
    names_itself: bool


def discovery_url(issuer: str) -> str:
    return f"{issuer.removesuffix('/')}/.well-known/openid-configuration"


def discovered(issuer: str, document: Mapping[str, Any]) -> Discovered:
    """Raises ProviderUnavailable where the document is not that of the issuer."""
    if document.get("issuer") != issuer:
        raise ProviderUnavailable(f"the discovery document is of another issuer than {issuer}")
    methods = document.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
    return Discovered(
        _endpoint(issuer, document, "authorization_endpoint"),
        _endpoint(issuer, document, "token_endpoint"),
        _endpoint(issuer, document, "jwks_uri"),
        "client_secret_basic" not in methods,
        document.get("authorization_response_iss_parameter_supported") is True,
    )


def _endpoint(issuer: str, document: Mapping[str, Any], name: str) -> str:
    """With TLS, unless the issuer itself is on this machine and has none."""
    url = document.get(name)
    try:
        parts = urlsplit(url if isinstance(url, str) else "")
        is_local = issuer.startswith("http:") and parts.hostname in LOOPBACK
    except ValueError:
        parts, is_local = urlsplit(""), False
    if not parts.hostname or not (parts.scheme == "https" or (parts.scheme == "http" and is_local)):
        raise ProviderUnavailable(f"the discovery document has no usable {name}")
    return str(url)
