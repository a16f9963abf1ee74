"""The location of the store: an SQLite file, or a PostgreSQL URL as in libpq."""

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
_CHOICES = {
    "sslmode": _MODES,
    "sslnegotiation": ("postgres", "direct"),
    "target_session_attrs": (
        "any",
        "read-write",
        "read-only",
        "primary",
        "standby",
        "prefer-standby",
    ),
}
_PARAMETERS = (
    *_CHOICES,
    "application_name",
    "host",
    "options",
    "passfile",
    "port",
    "ssl_max_protocol_version",
    "ssl_min_protocol_version",
    "sslcert",
    "sslcrl",
    "sslkey",
    "sslpassword",
    "sslrootcert",
)


@dataclass(frozen=True, slots=True, repr=False)
class DatabaseUrl:
    """The path of an SQLite file, or else the URL of a PostgreSQL database."""

    path: Path | None = None
    url: str = ""

    @property
    def shown(self) -> str:
        """Without user and password, for messages and logs."""
        if self.path is not None:
            return str(self.path)
        parts = urlsplit(self.url)
        hosts = parts.netloc.rpartition("@")[2] or dict(parse_qsl(parts.query)).get("host", "")
        return f"postgresql://{hosts}{parts.path}"

    def __repr__(self) -> str:
        return f"DatabaseUrl({self.shown})"


def postgres_url(text: str) -> DatabaseUrl:
    """Raises ValueError, which names the wrong part but never a secret."""
    if not re.fullmatch(r"postgres(ql)?://[^\s?#/]*/[^/?#\s]+(\?[^#\s]*)?", text):
        raise ValueError
    url = re.sub("^postgres:", "postgresql:", text)
    parts = urlsplit(url)
    given = parse_qsl(parts.query, keep_blank_values=True)
    for name, value in given:
        _require_known(name, value)
    names = [name for name, _ in given]
    if len(set(names)) < len(names):
        raise ValueError("a parameter is given twice")
    hosts = parts.netloc.rpartition("@")[2]
    if bool(hosts) == ("host" in names):
        raise ValueError("the host is missing or given twice")
    if hosts and not all(map(_is_host, hosts.split(","))):
        raise ValueError("a host or its port cannot be read")
    return DatabaseUrl(url=url)


def _require_known(name: str, value: str) -> None:
    if name not in _PARAMETERS:
        # Anything else may be part of a password that was not escaped.
        shown = f"'{name}'" if re.fullmatch("[a-z_]{1,30}", name) else "a parameter"
        raise ValueError(f"{shown} is not one of {', '.join(sorted(_PARAMETERS))}")
    choices = _CHOICES.get(name)
    if choices is not None and value not in choices:
        raise ValueError(f"'{name}' is one of {', '.join(choices)}")
    if not value:
        raise ValueError(f"'{name}' has no value")


def _is_host(text: str) -> bool:
    found = re.fullmatch(r"([A-Za-z0-9._~%-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?", text)
    return found is not None and 0 < int(found[2] or 5432) < 65_536
