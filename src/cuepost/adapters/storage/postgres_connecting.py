"""Connections to PostgreSQL, by a URL as libpq takes it."""

import ssl
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import asyncpg

Driver: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

APPLICATION_NAME = "cuepost"
CONNECT_PATIENCE_SECONDS = 5.0


async def connect(
    url: str,
    *,
    application_name: str = APPLICATION_NAME,
    server_settings: dict[str, str] | None = None,
    **options: Any,
) -> Driver:
    """The URL's own name of the application comes first."""
    parts = urlsplit(url)
    given = dict(parse_qsl(parts.query))
    if "," in parts.netloc or "," in given.get("host", ""):
        # Only one of several servers takes changes, and it is not always the same one.
        given.setdefault("target_session_attrs", "read-write")
    given.setdefault("application_name", application_name)
    if given.get("sslrootcert") == "system":
        del given["sslrootcert"]
        options["ssl"] = _system_authorities(given.pop("sslmode", "verify-full"))
    made: Driver = await asyncpg.connect(
        urlunsplit(parts._replace(query=urlencode(given))),
        timeout=CONNECT_PATIENCE_SECONDS,
        server_settings=server_settings,
        **options,
    )
    return made


def _system_authorities(mode: str) -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = mode == "verify-full"
    return context
