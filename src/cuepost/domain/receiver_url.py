"""The receiver URL: parsed strictly into the normal form that is stored, shown and called.

`urllib.parse` is not used for parsing, because it repairs what should be refused.
"""

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from unicodedata import category
from urllib.parse import quote

from cuepost.domain.egress_policy import (
    HIGHEST_PORT,
    Address,
    EgressPolicy,
    Verdict,
    judge_address,
)
from cuepost.domain.host_name import is_local_name, normalise_host_name
from cuepost.domain.inbox import inbox_token_in
from cuepost.domain.url_fault import SENTENCES, ReceiverUrlRefused, UrlFault

__all__ = ["LONGEST_URL", "ReceiverUrl", "ReceiverUrlRefused", "UrlFault", "parse_receiver_url"]

LONGEST_URL = 2048

_DEFAULT_PORTS = {"https": 443, "http": 80}
_VISIBLE_ASCII = "".join(map(chr, range(0x21, 0x7F)))
_NOT_VISIBLE_ASCII = re.compile(r"[^\x21-\x7e]")
_ABSOLUTE = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?]*)(.*)")
_PORT = re.compile(r"[1-9][0-9]{0,4}")
_FAULT_OF_CATEGORY = {
    "Cc": UrlFault.HAS_CONTROL_CHARACTERS,
    "Cf": UrlFault.HAS_CONTROL_CHARACTERS,
    "Cs": UrlFault.HAS_LONE_SURROGATES,
    "Zl": UrlFault.HAS_SPACES,
    "Zp": UrlFault.HAS_SPACES,
    "Zs": UrlFault.HAS_SPACES,
}


@dataclass(frozen=True, slots=True)
class ReceiverUrl:
    """A URL that may be called; `address` is set when the host is a literal address.

    `text` is pure ASCII: the host is punycode in lower case (a literal IPv6 address in brackets),
    a default port is left out, an empty path is `/`, and non-ASCII characters of path and query
    are percent-encoded as UTF-8. Everything else in path and query stays as it was written.
    `target` is the target of the request line, and `host` has no brackets. `inbox` is the token of
    a test inbox of this service; no connection is made to such a URL, and it has no other parts.
    """

    text: str
    scheme: str
    host: str
    port: int
    target: str
    address: Address | None
    inbox: str | None = None


def parse_receiver_url(text: str, policy: EgressPolicy) -> ReceiverUrl:
    """Raises ReceiverUrlRefused, and nothing else, for any other text.

    The host is checked before the scheme and the port, because for `http://localhost:3000` the
    message about the host helps most.
    """
    token = inbox_token_in(text, policy.inbox_prefix) if policy.inbox_prefix else None
    if token is not None:
        return ReceiverUrl(text, "", "", 0, "", None, inbox=token)
    _refuse_bad_characters(text)
    scheme, authority, rest = _split(text)
    host_text, port_text = _split_authority(authority)
    address = _literal_address(host_text)
    if address is None:
        host = normalise_host_name(host_text)
        if is_local_name(host) and not policy.allows_local_names:
            raise ReceiverUrlRefused(UrlFault.HOST_NOT_PUBLIC)
    else:
        host = str(address)
        if judge_address(address, policy) is not Verdict.ALLOWED:
            raise ReceiverUrlRefused(UrlFault.ADDRESS_NOT_PUBLIC)
    if scheme == "http" and not policy.allow_http:
        raise ReceiverUrlRefused(UrlFault.SCHEME_NOT_HTTPS)
    port = _judged_port(port_text, scheme, policy)
    target = quote(rest if rest.startswith("/") else "/" + rest, safe=_VISIBLE_ASCII)
    shown_host = f"[{host}]" if isinstance(address, IPv6Address) else host
    shown_port = "" if port == _DEFAULT_PORTS[scheme] else f":{port}"
    normal = f"{scheme}://{shown_host}{shown_port}{target}"
    if len(normal) > LONGEST_URL:
        raise ReceiverUrlRefused(UrlFault.TOO_LONG)
    return ReceiverUrl(normal, scheme, host, port, target, address)


def _refuse_bad_characters(text: str) -> None:
    if len(text) > LONGEST_URL:
        raise ReceiverUrlRefused(UrlFault.TOO_LONG)
    for character in _NOT_VISIBLE_ASCII.findall(text):
        fault = _FAULT_OF_CATEGORY.get(category(character))
        if fault is not None:
            raise ReceiverUrlRefused(fault)
    if "\\" in text:
        raise ReceiverUrlRefused(UrlFault.HAS_BACKSLASH)
    if "#" in text:
        raise ReceiverUrlRefused(UrlFault.HAS_FRAGMENT)


def _split(text: str) -> tuple[str, str, str]:
    """Scheme in lower case, authority, and all the rest with its first `/` or `?`."""
    parts = _ABSOLUTE.fullmatch(text)
    if parts is None:
        raise ReceiverUrlRefused(UrlFault.NOT_ABSOLUTE)
    scheme, authority, rest = parts.groups()
    if scheme.lower() not in _DEFAULT_PORTS:
        raise ReceiverUrlRefused(UrlFault.SCHEME_NOT_HTTPS)
    return scheme.lower(), authority, rest


def _split_authority(authority: str) -> tuple[str, str | None]:
    """Host (an IPv6 address with its brackets) and port, which is None if there is no colon."""
    if "@" in authority:
        raise ReceiverUrlRefused(UrlFault.HAS_CREDENTIALS)
    bracketed, bracket, after = authority.rpartition("]")
    name, colon, port = after.partition(":")
    if ":" in port:
        raise ReceiverUrlRefused(UrlFault.HOST_INVALID)
    host = bracketed + bracket + name
    if not host:
        raise ReceiverUrlRefused(UrlFault.HOST_MISSING)
    return host, port if colon else None


def _literal_address(host: str) -> Address | None:
    """None for a name; malformed IPv4 is refused later, because no name may end in a number."""
    if host.startswith("["):
        if "%" in host:
            raise ReceiverUrlRefused(UrlFault.HAS_ZONE_ID)
        try:
            return IPv6Address(host.removeprefix("[").removesuffix("]"))
        except ValueError:
            raise ReceiverUrlRefused(UrlFault.HOST_INVALID) from None
    try:
        return IPv4Address(host)
    except ValueError:
        return None


def _judged_port(text: str | None, scheme: str, policy: EgressPolicy) -> int:
    port = _DEFAULT_PORTS[scheme]
    if text is not None:
        if not _PORT.fullmatch(text) or int(text) > HIGHEST_PORT:
            raise ReceiverUrlRefused(UrlFault.PORT_INVALID)
        port = int(text)
    if not policy.allows_port(port):
        ports = ", ".join(f"{a}-{b}" if a != b else str(a) for a, b in policy.ports)
        sentence = f"{SENTENCES[UrlFault.PORT_NOT_ALLOWED]} Open here: {ports}."
        raise ReceiverUrlRefused(UrlFault.PORT_NOT_ALLOWED, sentence)
    return port
