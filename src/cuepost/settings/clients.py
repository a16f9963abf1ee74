"""The URL and the key with which a command calls a running service, from the environment."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from cuepost.settings import BadSettings

URL, API_KEY = "CUEPOST_URL", "CUEPOST_API_KEY"
DEFAULT_URL = "http://127.0.0.1:8000"


@dataclass(frozen=True, slots=True)
class ClientSettings:
    url: str
    api_key: str = field(repr=False)


def load_client(environ: Mapping[str, str]) -> ClientSettings:
    """Raises only BadSettings, with a message of one line."""
    url = environ.get(URL, "").strip() or DEFAULT_URL
    if not _is_address(url):
        raise BadSettings(
            f"{URL}={url!r}: expected an address such as https://cuepost.example.com."
        )
    key = environ.get(API_KEY, "").strip()
    if not key:
        raise BadSettings(f"{API_KEY} is missing; set it to an API key of the account.")
    if not key.isascii() or not key.isprintable():
        raise BadSettings(f"{API_KEY}: expected an API key, which begins with cpk_.")
    return ClientSettings(url.rstrip("/"), key)


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname)
