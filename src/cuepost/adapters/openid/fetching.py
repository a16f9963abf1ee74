"""Requests to the provider: bounded in time and size, without redirects and proxies."""

import json
import ssl
from collections.abc import Mapping
from typing import Any

import httpx2

from cuepost.ports.identity_provider import ProviderUnavailable

MOST_BYTES = 512 * 1024
CONNECTIONS = 10


class JsonClient:
    """The time of a request is bounded by its caller, who may make several in a row."""

    def __init__(self, tls: ssl.SSLContext) -> None:
        self._client = httpx2.AsyncClient(
            verify=tls,
            trust_env=False,
            follow_redirects=False,
            timeout=None,
            limits=httpx2.Limits(max_connections=CONNECTIONS, max_keepalive_connections=0),
            headers={"accept": "application/json", "accept-encoding": "identity"},
        )

    async def get(self, url: str) -> dict[str, Any]:
        return await self._answer("GET", url)

    async def post(
        self, url: str, form: Mapping[str, str], headers: Mapping[str, str]
    ) -> dict[str, Any]:
        return await self._answer("POST", url, data=dict(form), headers=dict(headers))

    async def close(self) -> None:
        await self._client.aclose()

    async def _answer(self, method: str, url: str, **more: Any) -> dict[str, Any]:
        try:
            async with self._client.stream(method, url, **more) as answer:
                body = await _body(answer)
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            raise ProviderUnavailable(f"{url}: {type(error).__name__} {error}") from None
        if answer.status_code != 200:
            raise ProviderUnavailable(f"{url}: status {answer.status_code}{_error(body)}")
        found = _parsed(body)
        if not isinstance(found, dict):
            raise ProviderUnavailable(f"{url}: the answer is not a JSON object")
        return found


async def _body(answer: httpx2.Response) -> bytes:
    body = b""
    async for piece in answer.aiter_raw():
        body += piece
        if len(body) > MOST_BYTES:
            raise ProviderUnavailable(f"{answer.url}: the answer is longer than {MOST_BYTES} bytes")
    return body


def _parsed(body: bytes) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _error(body: bytes) -> str:
    """The error code of OAuth 2.0, such as `invalid_grant`; a description may repeat values."""
    found = _parsed(body)
    error = found.get("error") if isinstance(found, dict) else None
    return f" {error[:50]!r}" if isinstance(error, str) else ""
