"""Handles requests: authentication, rate limit, scope, path, body, operation, response."""

import hashlib
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from uuid import UUID

from starlette.types import Receive, Scope, Send

from cuepost.application.deadline import RequestDeadline
from cuepost.application.perform import IdempotentCall
from cuepost.application.rate_limit import Allowance
from cuepost.application.retry_after import LEAST_SECONDS
from cuepost.application.service import Service
from cuepost.domain.access import Caller, Interface
from cuepost.domain.account_reference import AccountReference, account_reference
from cuepost.domain.errors import (
    AccountMoving,
    FieldError,
    Invalid,
    MediaUnavailable,
    NotFound,
    RateLimited,
    Refused,
    Unauthenticated,
)
from cuepost.domain.version import Expected
from cuepost.interfaces.rest.answers import Headers, Rendered, not_modified, render, transmit
from cuepost.interfaces.rest.bodies import ClientGone, read_body, require_json
from cuepost.interfaces.rest.inputs import BodyReader, query_without_parameters, read_query
from cuepost.interfaces.rest.operation import Call, Context, Operation
from cuepost.interfaces.rest.problems import InternalError, Rejected, StoreBusy, problem_of
from cuepost.interfaces.wire_models.entity_tags import tags_in
from cuepost.interfaces.wire_models.request_notes import CALLER, OPERATION
from cuepost.interfaces.wire_models.shapes import Request
from cuepost.log_lines import log_store_error
from cuepost.ports.store import Contention, StoreUnavailable

logger = logging.getLogger("cuepost.rest")
_BEARER = re.compile(rb"bearer +([\x21-\x7e]+)", re.IGNORECASE)
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
NO_IDS: Mapping[str, str] = {}
ACCOUNT_ID = "accountId"
_WITHOUT_BODY = ("GET", "DELETE")
_IDEMPOTENCY_KEY = re.compile(rb"[\x21-\x7e]{1,200}")


@dataclass(slots=True)
class IncomingRequest:
    """A request and the rate limit headers of its response."""

    scope: Scope
    receive: Receive
    headers: Mapping[bytes, bytes]
    allowance: Headers = ()


class PathHandler:
    """The ASGI application of one path; each method is a call."""

    def __init__(
        self, operations: Mapping[str, Operation], service: Service, base_url: str
    ) -> None:
        self._calls = {
            method: GuardedCall(operation, service, base_url)
            for method, operation in operations.items()
        }
        allowed = set(operations) | ({"HEAD"} if "GET" in operations else set())
        self._allowed = ", ".join(sorted(allowed))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method: str = scope["method"]
        call = self._calls.get("GET" if method == "HEAD" else method)
        if call is None:
            await transmit(problem_of(self._wrong_method()), send, head=method == "HEAD")
            return
        scope[OPERATION] = call.operation.name
        incoming = IncomingRequest(scope, receive, dict(scope["headers"]))
        try:
            rendered = await call.answer(incoming)
        except ClientGone:
            return
        await transmit(rendered, send, more=incoming.allowance, head=method == "HEAD")

    def _wrong_method(self) -> Rejected:
        return Rejected(
            405,
            "method_not_allowed",
            f"Method not allowed. Use {self._allowed}.",
            ((b"allow", self._allowed.encode()),),
        )


class GuardedCall:
    def __init__(self, operation: Operation, service: Service, base_url: str) -> None:
        self.operation = operation
        self._service = service
        self._reader = BodyReader(operation.body)
        self._nothing = operation.body() if not operation.takes_body else None
        self._without_query = query_without_parameters(operation.query)
        # Properties of the operation, computed once instead of at each request.
        self._takes_idempotency_key = operation.takes_idempotency_key
        self._takes_if_match = operation.takes_if_match
        self._takes_if_none_match = operation.takes_if_none_match
        self._seconds = service.request_timeout if operation.has_deadline else None
        self._render = partial(render, status=operation.status, base_url=base_url)

    async def answer(self, incoming: IncomingRequest) -> Rendered:
        """Turn every outcome into a response, except that the client has disconnected."""
        try:
            async with RequestDeadline(self._seconds) as deadline:
                return await self._carry_out(incoming, deadline)
        except (RateLimited, AccountMoving) as refusal:
            return self._with_retry_after(problem_of(refusal), refusal.retry_after_seconds)
        except MediaUnavailable as refusal:
            return self._with_retry_after(problem_of(refusal))
        except (Refused, Rejected) as refusal:
            return problem_of(refusal)
        except (StoreUnavailable, Contention) as error:
            log_store_error(logger, "store_unavailable", error, self.operation.name)
            return self._with_retry_after(problem_of(StoreBusy(error)))
        except ClientGone:
            raise
        except Exception:
            logger.exception("event=internal_error operation=%s", self.operation.name)
            return problem_of(InternalError())

    def _with_retry_after(self, rendered: Rendered, least: int = LEAST_SECONDS) -> Rendered:
        seconds = str(self._service.retry_after(least)).encode()
        return replace(rendered, headers=(*rendered.headers, (b"retry-after", seconds)))

    async def _carry_out(self, incoming: IncomingRequest, deadline: RequestDeadline) -> Rendered:
        caller = await self._authenticate(incoming)
        self._spend(incoming, caller)
        self._require_permission(caller)
        account, ids = _named(incoming.scope.get("path_params") or NO_IDS)
        key = self._idempotency_key(incoming.headers)
        query = self._read_query(incoming.scope["query_string"])
        with deadline.paused():
            body, canonical = await self._read_body(incoming)
        idempotent = None
        if key is not None:
            idempotent = IdempotentCall(key, _fingerprint(incoming.scope, canonical))
        context = Context(self._service, self._render, idempotent)
        expected = self._expected(incoming.scope)
        call: Call[Any, Any] = Call(caller, ids, body, query, expected, account)
        rendered = await self.operation.run(context, call)
        return not_modified(rendered) if self._is_known(incoming.scope, rendered) else rendered

    async def _authenticate(self, incoming: IncomingRequest) -> Caller:
        bearer = _BEARER.fullmatch(incoming.headers.get(b"authorization", b"").strip())
        if bearer is None:
            raise Unauthenticated
        client = incoming.scope.get("client")
        caller = await self._service.authenticate.caller(
            bearer[1].decode("ascii"), Interface.REST, client[0] if client else None
        )
        incoming.scope[CALLER] = caller.actor
        return caller

    def _spend(self, incoming: IncomingRequest, caller: Caller) -> None:
        rate_limit = self._service.rate_limit
        try:
            incoming.allowance = _allowance_headers(rate_limit.spend(caller))
        except RateLimited as limited:
            spent = Allowance(rate_limit.limit_of(caller), 0, limited.retry_after_seconds)
            incoming.allowance = _allowance_headers(spent)
            raise

    def _require_permission(self, caller: Caller) -> None:
        """Checked before the body is read; the use cases check again."""
        if self.operation.webhooks:
            caller.require_webhooks(self.operation.scope)
        else:
            caller.require(self.operation.scope)

    def _idempotency_key(self, headers: Mapping[bytes, bytes]) -> str | None:
        key = headers.get(b"idempotency-key")
        if key is None or not self._takes_idempotency_key:
            return None
        if not _IDEMPOTENCY_KEY.fullmatch(key):
            raise Invalid(
                FieldError(
                    "Idempotency-Key",
                    "invalid_idempotency_key",
                    "Use 1 to 200 visible ASCII characters.",
                )
            )
        return key.decode("ascii")

    def _expected(self, scope: Scope) -> Expected:
        condition = _listed(scope, b"if-match") if self._takes_if_match else None
        return None if condition is None else tags_in(condition, weakly=False)

    def _is_known(self, scope: Scope, rendered: Rendered) -> bool:
        condition = _listed(scope, b"if-none-match") if self._takes_if_none_match else None
        if condition is None:
            return False
        known = tags_in(condition, weakly=True)
        return known is None or rendered.version in known

    def _read_query(self, query: bytes) -> Request:
        if not query and self._without_query is not None:
            return self._without_query
        return read_query(query, self.operation.query)

    async def _read_body(self, incoming: IncomingRequest) -> tuple[Request | None, bytes]:
        if self.operation.method in _WITHOUT_BODY:
            return self._nothing, b""
        body = await read_body(incoming.headers, incoming.receive, self.operation.body_limit)
        if self._nothing is not None and not body:
            return self._nothing, b""
        require_json(incoming.headers)
        return self._reader.read(body)


def _named(path_params: Mapping[str, str]) -> tuple[AccountReference | None, dict[str, UUID]]:
    """An account can be named by its external id as well; everything else only by its id."""
    if ACCOUNT_ID not in path_params:
        return None, _ids(path_params)
    others = {name: text for name, text in path_params.items() if name != ACCOUNT_ID}
    return account_reference(path_params[ACCOUNT_ID]), _ids(others)


def _ids(path_params: Mapping[str, str]) -> dict[str, UUID]:
    """A malformed id is treated like an unknown id."""
    if not path_params:
        return {}
    if not all(map(_UUID.fullmatch, path_params.values())):
        raise NotFound
    return {name: UUID(text) for name, text in path_params.items()}


def _listed(scope: Scope, name: bytes) -> str | None:
    """The value of a list header, which may be repeated."""
    lines = [value for each, value in scope["headers"] if each == name]
    return b", ".join(lines).decode("latin-1") if lines else None


def _fingerprint(scope: Scope, canonical: bytes) -> bytes:
    request = f"{scope['method']} {scope['path']}\n".encode()
    return hashlib.sha256(request + canonical).digest()


def _allowance_headers(allowance: Allowance) -> Headers:
    return (
        (b"ratelimit-limit", b"%d" % allowance.limit),
        (b"ratelimit-remaining", b"%d" % allowance.remaining),
        (b"ratelimit-reset", b"%d" % allowance.reset_seconds),
    )
