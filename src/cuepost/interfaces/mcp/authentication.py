"""Checks host, origin, API key and rate limit before the body of a request is read."""

import json
import logging
import re
from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from cuepost.application.admission import RequestDeadline
from cuepost.application.service import Service
from cuepost.domain.access import Caller, Interface
from cuepost.domain.errors import (
    AccountMoved,
    AccountMoving,
    Forbidden,
    MissingScope,
    RateLimited,
    Refused,
    Unauthenticated,
)
from cuepost.interfaces.mcp.table import TOOLS
from cuepost.interfaces.wire_models.request_notes import CALLER, OPERATION
from cuepost.interfaces.wire_models.unavailable import why_unavailable
from cuepost.log_lines import log_store_error
from cuepost.ports.store import Contention, StoreUnavailable

PATH = "/mcp"
KEY_HOLDER = "cuepost.mcp.caller"
NOT_INSTALLED = (
    "MCP is not installed on this service. Its operator can install it with: "
    "pip install 'cuepost[mcp]'"
)

_BEARER = re.compile(rb"bearer +([\x21-\x7e]+)", re.IGNORECASE)
_DEFAULT_PORTS = {"http": 80, "https": 443}
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_STATUS: Mapping[type[Refused], int] = {
    Unauthenticated: 401,
    Forbidden: 403,
    AccountMoved: 410,
    RateLimited: 429,
    AccountMoving: 503,
}
_CHALLENGE = {"www-authenticate": "Bearer"}

logger = logging.getLogger("cuepost.mcp")


class RequestRejected(Exception):
    """The interface rejects the request; the message says what to do instead."""

    def __init__(self, status: int, code: str, sentence: str, **headers: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.code = code
        self.headers = headers


class Authentication:
    """ASGI middleware that authenticates requests and stores the caller in the scope."""

    def __init__(
        self, inside: ASGIApp | None, service: Service, base_url: str, hosts: frozenset[str]
    ) -> None:
        """`inside` is None if the SDK is not installed."""
        self._inside = inside
        self._service = service
        self._base_url = base_url
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[OPERATION] = "mcp"
        try:
            headers = dict(scope["headers"])
            self._require_own_host(headers)
            with RequestDeadline(self._service.request_timeout):
                scope[KEY_HOLDER] = await self._admit(scope, headers)
            _require_post(scope["method"])
            if self._inside is None:
                raise RequestRejected(501, "mcp_not_installed", NOT_INSTALLED)
        except (RateLimited, AccountMoving) as refusal:
            more = {"retry-after": str(self._service.retry_after(refusal.retry_after_seconds))}
            await _refuse(send, _status_of(refusal), refusal.code, str(refusal), more)
        except Refused as refusal:
            more = _CHALLENGE if isinstance(refusal, Unauthenticated) else {}
            await _refuse(send, _status_of(refusal), refusal.code, str(refusal), more)
        except (StoreUnavailable, Contention) as error:
            log_store_error(logger, "store_unavailable", error, "mcp")
            more = {"retry-after": str(self._service.retry_after())}
            await _refuse(send, 503, "store_unavailable", why_unavailable(error), more)
        except RequestRejected as turned:
            await _refuse(send, turned.status, turned.code, str(turned), turned.headers)
        else:
            await self._inside(scope, receive, send)

    def _require_own_host(self, headers: Mapping[bytes, bytes]) -> None:
        """Prevent DNS rebinding: a web page must not reach a service on the user's machine."""
        if headers.get(b"host", b"").decode("latin-1").lower() not in self._hosts:
            raise RequestRejected(
                421,
                "misdirected_request",
                f"This service is available at {self._base_url}{PATH}. If that address is wrong, "
                "its operator has to set CUEPOST_BASE_URL.",
            )
        origin = headers.get(b"origin")
        if origin is not None and not self._is_own(origin.decode("latin-1").lower()):
            raise RequestRejected(
                403,
                "origin_not_allowed",
                "Requests from web pages of other origins are not allowed.",
            )

    def _is_own(self, origin: str) -> bool:
        scheme, _, host = origin.partition("://")
        return scheme in _DEFAULT_PORTS and host in self._hosts

    async def _admit(self, scope: Scope, headers: Mapping[bytes, bytes]) -> Caller:
        bearer = _BEARER.fullmatch(headers.get(b"authorization", b"").strip())
        if bearer is None:
            raise Unauthenticated
        client = scope.get("client")
        caller = await self._service.authenticate.caller(
            bearer[1].decode("ascii"), Interface.MCP, client[0] if client else None
        )
        scope[CALLER] = caller.actor
        self._service.rate_limit.spend(caller)
        if not any(tool.allows(caller) for tool in TOOLS):
            raise MissingScope(
                "This key has no scope that any tool needs; use an API key of an account."
            )
        return caller


def own_hosts(base_url: str, host: str, port: int) -> frozenset[str]:
    """Valid Host headers: the base URL, and the address that the process listens on."""
    parts = urlsplit(base_url)
    name = _bracketed(parts.hostname or "")
    usual = _DEFAULT_PORTS[parts.scheme]
    found = {f"{name}:{parts.port or usual}"}
    if parts.port in (None, usual):
        found.add(name)
    names = _LOOPBACK if _is_local(host) else (_bracketed(host.lower()),)
    return frozenset(found | {f"{each}:{port}" for each in names})


def _is_local(host: str) -> bool:
    """Whether the address is loopback, or the wildcard address, which includes loopback."""
    try:
        address = ip_address(host)
    except ValueError:
        return host.lower() == "localhost"
    return address.is_loopback or address.is_unspecified


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _require_post(method: str) -> None:
    """The server is stateless, so there are no streams for GET and no sessions for DELETE."""
    if method != "POST":
        raise RequestRejected(
            405, "method_not_allowed", "Method not allowed. Use POST.", allow="POST"
        )


def _status_of(refusal: Refused) -> int:
    return next(_STATUS[each] for each in type(refusal).__mro__ if each in _STATUS)


async def _refuse(
    send: Send, status: int, code: str, detail: str, headers: Mapping[str, str]
) -> None:
    """Send a problem document (RFC 9457), as REST does."""
    document = {
        "type": f"urn:cuepost:problem:{code}",
        "title": code.replace("_", " ").capitalize(),
        "status": status,
        "detail": detail,
        "code": code,
    }
    body = json.dumps(document).encode()
    sent: Sequence[tuple[bytes, bytes]] = [
        (b"content-type", b"application/problem+json"),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        *((name.encode(), value.encode()) for name, value in headers.items()),
    ]
    await send({"type": "http.response.start", "status": status, "headers": sent})
    await send({"type": "http.response.body", "body": body})
