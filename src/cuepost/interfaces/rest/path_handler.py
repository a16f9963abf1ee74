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

from cuepost.application.admission import Allowance, RequestDeadline
from cuepost.application.perform import IdempotentCall
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
from cuepost.interfaces.rest.answers import Rendered, not_modified, render, transmit
from cuepost.interfaces.rest.bodies import BodyReader, ClientGone
from cuepost.interfaces.rest.operation import Call, Context, Operation
from cuepost.interfaces.rest.problems import InternalError, Rejected, StoreBusy, problem_of
from cuepost.interfaces.rest.queries import query_without_parameters, read_query
from cuepost.interfaces.wire_models.entity_tags import tags_in
from cuepost.interfaces.wire_models.request_notes import CALLER, OPERATION
from cuepost.log_lines import log_store_error
from cuepost.ports.store import Contention, StoreUnavailable

logger = logging.getLogger("cuepost.rest")
_BEARER = re.compile(rb"bearer +([\x21-\x7e]+)", re.IGNORECASE)
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
NO_IDS: Mapping[str, UUID] = {}
ACCOUNT_ID = "accountId"
_IDEMPOTENCY_KEY = re.compile(rb"[\x21-\x7e]{1,200}")
_INVALID_KEY = FieldError(
    "Idempotency-Key", "invalid_idempotency_key", "Use 1 to 200 visible ASCII characters."
)


@dataclass(slots=True)
class IncomingRequest:
    """A request, and what is left of the rate limit of its key."""

    scope: Scope
    receive: Receive
    headers: Mapping[bytes, bytes]
    allowance: Allowance | None = None


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
        """Turn every outcome into a response, except that the client has disconnected."""
        method: str = scope["method"]
        call = self._calls.get("GET" if method == "HEAD" else method)
        if call is None:
            await transmit(problem_of(self._wrong_method()), send, head=method == "HEAD")
            return
        scope[OPERATION] = call.operation.name
        incoming = IncomingRequest(scope, receive, dict(scope["headers"]))
        try:
            with RequestDeadline(call.seconds) as deadline:
                rendered = await call.answer(incoming, deadline)
        except ClientGone:
            return
        except (Refused, Rejected, StoreUnavailable, Contention) as error:
            rendered = call.refusal(error)
        except Exception:
            logger.exception("event=internal_error operation=%s", call.operation.name)
            rendered = problem_of(InternalError())
        await transmit(rendered, send, allowance=incoming.allowance, head=method == "HEAD")

    def _wrong_method(self) -> Rejected:
        return Rejected(
            405,
            "method_not_allowed",
            f"Method not allowed. Use {self._allowed}.",
            ((b"allow", self._allowed.encode()),),
        )


class GuardedCall:
    """One call; what does not depend on the request is prepared once."""

    def __init__(self, operation: Operation, service: Service, base_url: str) -> None:
        self.operation = operation
        self.seconds = service.request_timeout if operation.has_deadline else None
        self._service = service
        self._context = Context(
            service, partial(render, status=operation.status, base_url=base_url)
        )
        self._body = BodyReader(operation)
        self._without_query = query_without_parameters(operation.query)
        self._takes_idempotency_key = operation.takes_idempotency_key
        self._takes_if_match = operation.takes_if_match
        self._takes_if_none_match = operation.takes_if_none_match

    async def answer(self, incoming: IncomingRequest, deadline: RequestDeadline) -> Rendered:
        scope, headers = incoming.scope, incoming.headers
        caller = await self._admitted(incoming)
        path_params = scope.get("path_params")
        account, ids = _named(path_params) if path_params else (None, NO_IDS)
        key = headers.get(b"idempotency-key") if self._takes_idempotency_key else None
        if key is not None and not _IDEMPOTENCY_KEY.fullmatch(key):
            raise Invalid(_INVALID_KEY)
        query = self._without_query
        if query is None or scope["query_string"]:
            query = read_query(scope["query_string"], self.operation.query)
        with deadline.paused():
            body, canonical = await self._body.read(headers, incoming.receive)
        idempotent = None
        if key is not None:
            idempotent = IdempotentCall(key.decode("ascii"), _fingerprint(scope, canonical))
        expected = _expected(scope) if self._takes_if_match else None
        call: Call[Any, Any] = Call(caller, ids, body, query, expected, account, idempotent)
        rendered = await self.operation.run(self._context, call)
        if self._takes_if_none_match and _is_known(scope, rendered):
            return not_modified(rendered)
        return rendered

    async def _admitted(self, incoming: IncomingRequest) -> Caller:
        """The caller, if it may make this call; checked before the body is read."""
        bearer = _BEARER.fullmatch(incoming.headers.get(b"authorization", b"").strip())
        if bearer is None:
            raise Unauthenticated
        client = incoming.scope.get("client")
        caller = await self._service.authenticate.caller(
            bearer[1].decode("ascii"), Interface.REST, client[0] if client else None
        )
        incoming.scope[CALLER] = caller.actor
        try:
            incoming.allowance = self._service.rate_limit.spend(caller)
        except RateLimited as limited:
            incoming.allowance = Allowance(limited.limit, 0, limited.retry_after_seconds)
            raise
        # The use cases check again.
        if self.operation.webhooks:
            caller.require_webhooks(self.operation.scope)
        else:
            caller.require(self.operation.scope)
        return caller

    def refusal(self, error: Refused | Rejected | StoreUnavailable | Contention) -> Rendered:
        if isinstance(error, StoreUnavailable | Contention):
            log_store_error(logger, "store_unavailable", error, self.operation.name)
            return self._with_retry_after(problem_of(StoreBusy(error)))
        rendered = problem_of(error)
        if isinstance(error, RateLimited | AccountMoving):
            return self._with_retry_after(rendered, error.retry_after_seconds)
        if isinstance(error, MediaUnavailable):
            return self._with_retry_after(rendered)
        return rendered

    def _with_retry_after(self, rendered: Rendered, least: int = LEAST_SECONDS) -> Rendered:
        seconds = str(self._service.retry_after(least)).encode()
        return replace(rendered, headers=(*rendered.headers, (b"retry-after", seconds)))


def _named(path_params: Mapping[str, str]) -> tuple[AccountReference | None, dict[str, UUID]]:
    """An account can be named by its external id as well; everything else only by its id."""
    if ACCOUNT_ID not in path_params:
        return None, _ids(path_params)
    others = {name: text for name, text in path_params.items() if name != ACCOUNT_ID}
    return account_reference(path_params[ACCOUNT_ID]), _ids(others)


def _ids(path_params: Mapping[str, str]) -> dict[str, UUID]:
    """A malformed id is treated like an unknown id."""
    if not all(map(_UUID.fullmatch, path_params.values())):
        raise NotFound
    return {name: UUID(text) for name, text in path_params.items()}


def _is_known(scope: Scope, rendered: Rendered) -> bool:
    condition = _listed(scope, b"if-none-match")
    if condition is None:
        return False
    known = tags_in(condition, weakly=True)
    return known is None or rendered.version in known


def _expected(scope: Scope) -> Expected:
    condition = _listed(scope, b"if-match")
    return None if condition is None else tags_in(condition, weakly=False)


def _listed(scope: Scope, name: bytes) -> str | None:
    """The value of a list header, which may be repeated."""
    lines = [value for each, value in scope["headers"] if each == name]
    return b", ".join(lines).decode("latin-1") if lines else None


def _fingerprint(scope: Scope, canonical: bytes) -> bytes:
    request = f"{scope['method']} {scope['path']}\n".encode()
    return hashlib.sha256(request + canonical).digest()
