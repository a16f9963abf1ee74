"""The authentication before the protocol: host, origin, key and rate, before a body is read."""

import json
import logging
import re
from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from cuepost.application.deadline import request_deadline
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
    "Tools for agents are not installed here. The operator of this service installs them with: "
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


class TurnedAway(Exception):
    """The request is not for this interface; the message says what to do instead."""

    def __init__(self, status: int, code: str, sentence: str, **headers: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.code = code
        self.headers = headers


class Authentication:
    """Everything behind it knows who asks: the scope holds the caller."""

    def __init__(
        self, inside: ASGIApp | None, service: Service, base_url: str, hosts: frozenset[str]
    ) -> None:
        """`inside` is None where the protocol is not installed."""
        self._inside = inside
        self._service = service
        self._base_url = base_url
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[OPERATION] = "mcp"
        try:
            headers = dict(scope["headers"])
            self._require_own_host(headers)
            async with request_deadline(self._service.request_timeout):
                scope[KEY_HOLDER] = await self._admit(scope, headers)
            _require_post(scope["method"])
            if self._inside is None:
                raise TurnedAway(501, "mcp_not_installed", NOT_INSTALLED)
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
        except TurnedAway as turned:
            await _refuse(send, turned.status, turned.code, str(turned), turned.headers)
        else:
            await self._inside(scope, receive, send)

    def _require_own_host(self, headers: Mapping[bytes, bytes]) -> None:
        """A page in somebody's browser must not reach a service on their machine by a name."""
        if headers.get(b"host", b"").decode("latin-1").lower() not in self._hosts:
            raise TurnedAway(
                421,
                "misdirected_request",
                f"This service is reached at {self._base_url}{PATH}. If that is not its address, "
                "its operator has to set CUEPOST_BASE_URL.",
            )
        origin = headers.get(b"origin")
        if origin is not None and not self._is_own(origin.decode("latin-1").lower()):
            raise TurnedAway(
                403, "origin_not_allowed", "Requests from pages of other sites are not answered."
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
            raise MissingScope("This key has no scope that any tool needs; use an account key.")
        return caller


def own_hosts(base_url: str, host: str, port: int) -> frozenset[str]:
    """What a Host header may say: the service's own address, and where the process listens."""
    parts = urlsplit(base_url)
    name = _bracketed(parts.hostname or "")
    usual = _DEFAULT_PORTS[parts.scheme]
    found = {f"{name}:{parts.port or usual}"}
    if parts.port in (None, usual):
        found.add(name)
    names = _LOOPBACK if _is_local(host) else (_bracketed(host.lower()),)
    return frozenset(found | {f"{each}:{port}" for each in names})


def _is_local(host: str) -> bool:
    """Loopback, or every address of the machine, which includes it."""
    try:
        address = ip_address(host)
    except ValueError:
        return host.lower() == "localhost"
    return address.is_loopback or address.is_unspecified


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _require_post(method: str) -> None:
    """There are no sessions and no streams to open or to end."""
    if method != "POST":
        raise TurnedAway(405, "method_not_allowed", "This address answers to POST.", allow="POST")


def _status_of(refusal: Refused) -> int:
    return next(_STATUS[each] for each in type(refusal).__mro__ if each in _STATUS)


async def _refuse(
    send: Send, status: int, code: str, detail: str, headers: Mapping[str, str]
) -> None:
    """A problem document (RFC 9457), as from the rest of the service."""
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
