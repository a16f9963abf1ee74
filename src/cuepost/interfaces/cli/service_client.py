"""The HTTP client of the developer tools, for a running service."""

import http.client
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlencode, urlsplit

import click

from cuepost.interfaces.cli.output import Command
from cuepost.interfaces.cli.runtime import CannotRun, InvalidInput
from cuepost.settings import CLIENT_VARIABLES

TIMEOUT_SECONDS = 30.0
TOO_MANY, SERVER_ERRORS = 429, 500
URL, API_KEY = "CUEPOST_URL", "CUEPOST_API_KEY"


class UnknownResource(CannotRun):
    """The service responded with 404."""


class ServiceUnavailable(CannotRun):
    """The service cannot be reached, or responded with 429 or 5xx; a later call may succeed."""


def service_options(command: Command) -> Command:
    """Options for the address of the service and the key, which is never an argument itself."""
    default = CLIENT_VARIABLES[URL].default
    options: list[Callable[[Command], Command]] = [
        click.option(
            "--url",
            envvar=URL,
            default=default,
            show_default=True,
            show_envvar=True,
            help="The URL of the service.",
        ),
        click.option(
            "--api-key-file",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help=f"A file with the account's API key.  [default: ${API_KEY}]",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


@dataclass(frozen=True, slots=True)
class ServiceClient:
    base_url: SplitResult
    key: str = field(repr=False)

    @classmethod
    def of(cls, url: str, api_key_file: Path | None) -> "ServiceClient":
        kind = CLIENT_VARIABLES[URL].kind
        try:
            base_url = urlsplit(kind.read(url.rstrip("/")))
        except ValueError:
            raise InvalidInput(f"{URL}: expected {kind.expected}.") from None
        key = _content(api_key_file) if api_key_file else os.environ.get(API_KEY, "").strip()
        if not key:
            raise InvalidInput(f"No API key: set {API_KEY} or use --api-key-file.")
        return cls(base_url, key)

    def with_key(self, key: str) -> "ServiceClient":
        return ServiceClient(self.base_url, key)

    def get(self, path: str, **query: str | None) -> Any:
        chosen = urlencode({name: value for name, value in query.items() if value is not None})
        return self._call("GET", f"{path}?{chosen}" if chosen else path)

    def post(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        return self._call("POST", path, body)

    def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        headers = {"Authorization": f"Bearer {self.key}", "Accept": "application/json"}
        sent = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            sent = json.dumps(body)
        connection = self._connection()
        try:
            connection.request(method, self.base_url.path + path, sent, headers)
            answer = connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException, ValueError) as error:
            where = self.base_url.geturl()
            raise ServiceUnavailable(
                f"No response from {where}: {error}. Check that the service is running and that "
                f"{URL} is right."
            ) from error
        finally:
            connection.close()
        return _read(answer.status, text)

    def _connection(self) -> http.client.HTTPConnection:
        kind = (
            http.client.HTTPSConnection
            if self.base_url.scheme == "https"
            else http.client.HTTPConnection
        )
        return kind(self.base_url.hostname or "", self.base_url.port, timeout=TIMEOUT_SECONDS)


def _read(status: int, text: bytes) -> Any:
    try:
        answer = json.loads(text)
    except ValueError:
        kind = ServiceUnavailable if status >= SERVER_ERRORS else CannotRun
        raise kind(f"The service responded with {status} and no JSON.") from None
    if status < 300:
        return answer
    detail = answer.get("detail") if isinstance(answer, dict) else None
    words = str(detail or f"The service responded with {status}.")
    if status == 401:
        words = f"The service rejected the API key ({API_KEY})."
    if status == 404:
        raise UnknownResource(words)
    if status == TOO_MANY or status >= SERVER_ERRORS:
        raise ServiceUnavailable(words)
    raise CannotRun(words)


def _content(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}.") from None
