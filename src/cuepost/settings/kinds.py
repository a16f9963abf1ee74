"""The types of settings: what is expected, and how the text is parsed."""

import re
import ssl
from base64 import b64decode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cuepost.domain.access import CELL as CELL_NAME
from cuepost.domain.artifact import is_media_key
from cuepost.domain.egress_policy import parse_networks, parse_ports
from cuepost.settings.database_url import DatabaseUrl, postgres_url

MASTER_KEY_BYTES = 32


@dataclass(frozen=True, slots=True)
class SettingType:
    """`read` raises ValueError; without a message, `expected` is shown."""

    expected: str
    read: Callable[[str], Any]
    secret: bool = False


def whole(lowest: int, highest: int) -> SettingType:
    return SettingType(
        f"a whole number from {lowest} to {highest}",
        lambda text: int(_number(text, r"[0-9]{1,9}", lowest, highest)),
    )


def decimal(lowest: float, highest: float, unit: str) -> SettingType:
    return SettingType(
        f"a number of {unit} from {lowest:g} to {highest:g}",
        lambda text: _number(text, r"[0-9]{1,9}(\.[0-9]{1,6})?", lowest, highest),
    )


def optional(kind: SettingType) -> SettingType:
    return SettingType(
        f"{kind.expected}, or nothing",
        lambda text: kind.read(text) if text else None,
        kind.secret,
    )


def choice(meanings: Mapping[str, Any]) -> SettingType:
    def read(text: str) -> Any:
        if text not in meanings:
            raise ValueError
        return meanings[text]

    return SettingType(" or ".join(f"`{word}`" for word in meanings), read)


def master_keys(text: str) -> tuple[bytes, ...]:
    try:
        keys = tuple(b64decode(item.strip(), validate=True) for item in text.split(","))
    except ValueError:
        raise ValueError from None
    if any(len(key) != MASTER_KEY_BYTES for key in keys):
        raise ValueError
    return keys


def _number(text: str, pattern: str, lowest: float, highest: float) -> float:
    if not re.fullmatch(pattern, text) or not lowest <= float(text) <= highest:
        raise ValueError
    return float(text)


def _path(text: str) -> Path:
    if not text.isprintable() or not text.strip():
        raise ValueError
    try:
        return Path(text).expanduser()
    except RuntimeError:  # the home directory is not known
        raise ValueError from None


def _host(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9._:-]+", text):
        raise ValueError
    return text


def _base_url(text: str) -> str:
    if not re.fullmatch(r"https?://[!-~]*[^/]", text) or re.search(r"[?#@\\\"<>]", text):
        raise ValueError
    _require_host(text)
    return text


def _database_url(text: str) -> DatabaseUrl:
    if text.startswith("sqlite:///"):
        path = text.removeprefix("sqlite:///")
        if re.search(r"[?#]|:memory:|/$", path):
            raise ValueError
        return DatabaseUrl(path=_path(path))
    return postgres_url(text)


def _require_host(url: str) -> None:
    try:
        parts = urlsplit(url)
        complete = parts.hostname and parts.port != 0
    except ValueError:
        raise ValueError from None
    if not complete:
        raise ValueError


def _media_url(text: str) -> str:
    if re.fullmatch(r"file:///[^\s?#]+", text):
        return text
    found = re.fullmatch(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](?:/([^\s?#%]*?)/?)?", text)
    if found is None or (found[1] and not is_media_key(found[1])):
        raise ValueError
    return text


def _cell(text: str) -> str:
    if text and not CELL_NAME.fullmatch(text):
        raise ValueError
    return text


def _region(text: str) -> str:
    if not re.fullmatch(r"[a-z0-9-]{1,50}", text):
        raise ValueError
    return text


def _ca_file(text: str) -> Path | None:
    if not text:
        return None
    try:
        ssl.create_default_context(cafile=text)
    except OSError:
        raise ValueError from None
    return Path(text)


ACCESS = choice({"open": True, "closed": False})
API_KEY = SettingType("a key, `cpk_…`", str, secret=True)
BASE_URL = SettingType("an absolute http or https URL without a query and a final slash", _base_url)
BOOLEAN = choice({"true": True, "false": False})
CA_FILE = SettingType("a file with certificates in PEM form", _ca_file)
CELL = SettingType("up to 16 lower-case letters and digits", _cell)
DATABASE_URL = SettingType(
    "`sqlite:///path` or `postgresql://user:password@host:port/name` with parameters as in libpq",
    _database_url,
    secret=True,
)
_DELAY = decimal(0, 86_400, "seconds")
DELAYS = SettingType(
    "comma-separated numbers of seconds, at most a day each",
    lambda text: tuple(_DELAY.read(item.strip()) for item in text.split(",")),
)
FOLDER = SettingType("a folder", _path)
HOST = SettingType("an address or a host name", _host)
LOG_FORMAT = choice({name: name for name in ("text", "json")})
LOG_LEVEL = choice({name: name.upper() for name in ("debug", "info", "warning", "error")})
MASTER_KEY = SettingType(
    "32 bytes as base64, or several such keys, comma-separated", master_keys, secret=True
)
MEDIA_URL = SettingType("`file:///absolute/path` or `s3://bucket/prefix`", _media_url)
NETWORKS = SettingType("comma-separated CIDRs, such as `10.0.0.0/8,fd00::/8`", parse_networks)
POOLER = choice({name: name for name in ("none", "session", "transaction", "transaction-prepared")})
POSTGRES_URL = SettingType(
    "`postgresql://user:password@host:port/name` with parameters as in libpq",
    postgres_url,
    secret=True,
)
SWITCH = choice({"on": True, "off": False})
REGION = SettingType("the name of a region, such as `eu-central-1`", _region)
SIGNING_SECRETS = SettingType("`whsec_…`, or several, comma-separated", str, secret=True)
PORTS = SettingType("comma-separated ports and ranges, such as `443,8000-8999`", parse_ports)
