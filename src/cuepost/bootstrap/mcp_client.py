"""The proxy of `cuepost mcp`, which needs neither a store nor a server."""

import asyncio
from collections.abc import Mapping

from cuepost.bootstrap.extras import MissingExtra, require
from cuepost.interfaces.cli.runtime import CannotRun, InvalidInput
from cuepost.settings import BadSettings
from cuepost.settings.clients import load_client


def speak_mcp(environ: Mapping[str, str]) -> None:
    """Checks the settings before it imports the protocol, which takes a second."""
    try:
        service = load_client(environ)
    except BadSettings as error:
        raise InvalidInput(str(error)) from error
    try:
        require("mcp", "'cuepost mcp' speaks the Model Context Protocol")
    except MissingExtra as error:
        raise CannotRun(str(error)) from error
    from cuepost.interfaces.mcp.proxy import CannotSpeak, speak  # noqa: PLC0415  # see above

    try:
        asyncio.run(speak(service.url, service.api_key))
    except CannotSpeak as error:
        raise CannotRun(str(error)) from error
