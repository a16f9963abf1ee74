"""Connects to PostgreSQL by a libpq URL."""

import ssl
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import asyncpg
from asyncpg.protocol import protocol as driver_protocol

from cuepost.adapters.storage.pooler import WrongPooler

Driver: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

# For each element of an array, the driver asks these abstract classes whether it is an array too,
# which takes longer than encoding it. Concrete classes are several times as fast; all arrays are
# lists or tuples here, and none of them is nested.
vars(driver_protocol).update(IterableABC=(list, tuple), SizedABC=(list, tuple))

APPLICATION_NAME = "cuepost"
CONNECT_TIMEOUT_SECONDS = 5.0


async def connect(
    url: str,
    *,
    application_name: str = APPLICATION_NAME,
    wanted_server: str = "read-write",
    server_settings: dict[str, str] | None = None,
    **options: Any,
) -> Driver:
    """Parameters of the URL take precedence over `application_name` and `wanted_server`."""
    parts = urlsplit(url)
    given = dict(parse_qsl(parts.query))
    if "," in parts.netloc or "," in given.get("host", ""):
        # Only one of several servers accepts writes, and not always the same one.
        given.setdefault("target_session_attrs", wanted_server)
    given.setdefault("application_name", application_name)
    if given.get("sslrootcert") == "system":
        del given["sslrootcert"]
        options["ssl"] = _system_authorities(given.pop("sslmode", "verify-full"))
    try:
        made: Driver = await asyncpg.connect(
            urlunsplit(parts._replace(query=urlencode(given))),
            timeout=CONNECT_TIMEOUT_SECONDS,
            server_settings=server_settings,
            **options,
        )
    except asyncpg.ProtocolViolationError as error:
        if "unsupported startup parameter" not in str(error):
            raise
        raise WrongPooler(_refused_by_pooler(str(error), ours=bool(server_settings))) from error
    return made


def _refused_by_pooler(said: str, *, ours: bool) -> str:
    fix = (
        "set CUEPOST_DATABASE_POOLER to its pool_mode, session or transaction."
        if ours
        else "leave it out of the URL, or list it in the pooler's ignore_startup_parameters."
    )
    return f"There is a pooler in front of the database ({said}): {fix}"


def _system_authorities(mode: str) -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = mode == "verify-full"
    return context
