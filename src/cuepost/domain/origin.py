"""Origins of web pages, as an operator lists them: `https://app.example.com`."""

import re
from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit

_ORIGIN = re.compile(r"https?://[A-Za-z0-9._:\[\]-]+")
_URL = re.compile(r"https?://[!#-;=?-\[\]_a-z~%]{1,1990}")
_PORTS = {"https": 443, "http": 80}


def parse_origins(text: str) -> tuple[str, ...]:
    """Comma-separated; raises ValueError with a message."""
    return tuple(_origin(each.strip()) for each in text.split(",")) if text.strip() else ()


def origin_of(url: str) -> str | None:
    """None if it is not a plain http or https URL."""
    if not _URL.fullmatch(url):
        return None
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if not parts.hostname or "@" in parts.netloc or port == 0:
        return None
    return _text(parts, port)


def is_local(origin: str) -> bool:
    """Whether it is on the same machine, where a page without TLS cannot be overheard."""
    host = urlsplit(origin).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _origin(text: str) -> str:
    found = origin_of(text) if _ORIGIN.fullmatch(text) else None
    if found is None:
        raise ValueError(f"{text!r} is not an origin such as https://app.example.com.")
    if found.startswith("http:") and not is_local(found):
        raise ValueError(f"{text!r} has to begin with https://.")
    return found


def _text(parts: SplitResult, port: int | None) -> str:
    scheme, host = parts.scheme.lower(), (parts.hostname or "").lower()
    name = f"[{host}]" if ":" in host else host
    return f"{scheme}://{name}" + ("" if port in (None, _PORTS[scheme]) else f":{port}")
