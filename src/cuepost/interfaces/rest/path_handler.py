"""Handles requests: authentication, rate limit, scope, path, body, operation, response."""

import hashlib
import logging
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

import msgspec
from starlette.types import Receive, Scope, Send

from cuepost.application.admission import Allowance, RequestDeadline
from cuepost.application.perform import IdempotentCall
from cuepost.application.retry_after import LEAST_SECONDS
from cuepost.application.service import Service
from cuepost.domain.access import Caller, Interface
from cuepost.domain.errors import (
    AccountMoving,
    FieldError,
    Invalid,
    MediaUnavailable,
    RateLimited,
    Refused,
    Unauthenticated,
)
from cuepost.interfaces.rest.answers import (
    COMMON_HEADERS,
    NO_CONTENT,
    NOT_MODIFIED,
    Rendered,
    Reply,
    not_modified,
)
from cuepost.interfaces.rest.operation import Call, Context, Operation
from cuepost.interfaces.rest.problems import InternalError, Rejected, StoreBusy, problem_of
from cuepost.interfaces.rest.request_input import (
    BodyReader,
    ClientGone,
    expected_by,
    is_known,
    named_in,
    query_without_parameters,
    read_query,
)
from cuepost.interfaces.wire_models.entity_tags import entity_tag
from cuepost.interfaces.wire_models.request_notes import CALLER, OPERATION
from cuepost.log_lines import log_store_error
from cuepost.ports.store import Contention, StoreUnavailable

logger = logging.getLogger("cuepost.rest")
_BEARER = re.compile(rb"bearer +([\x21-\x7e]+)", re.IGNORECASE)
NO_IDS: Mapping[str, UUID] = {}
# The key of the scope for what is left of the rate limit of the caller's key.
_ALLOWANCE = "cuepost.allowance"
_IDEMPOTENCY_KEY = re.compile(rb"[\x21-\x7e]{1,200}")
_INVALID_KEY = FieldError(
    "Idempotency-Key", "invalid_idempotency_key", "Use 1 to 200 visible ASCII characters."
)

_encode = msgspec.json.Encoder().encode


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
            await transmit(problem_of(self._wrong_method()), scope, send)
            return
        scope[OPERATION] = call.operation.name
        try:
            with RequestDeadline(call.seconds) as deadline:
                rendered = await call.answer(scope, receive, deadline)
        except ClientGone:
            return
        except (Refused, Rejected, StoreUnavailable, Contention) as error:
            rendered = call.refusal(error)
        except Exception:
            logger.exception("event=internal_error operation=%s", call.operation.name)
            rendered = problem_of(InternalError())
        await transmit(rendered, scope, send)

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
        self._base_url = base_url
        self._context = Context(service, self._render)
        self._body = BodyReader(operation)
        self._without_query = query_without_parameters(operation.query)
        self._takes_idempotency_key = operation.takes_idempotency_key
        self._takes_if_match = operation.takes_if_match
        self._takes_if_none_match = operation.takes_if_none_match

    async def answer(self, scope: Scope, receive: Receive, deadline: RequestDeadline) -> Rendered:
        headers = dict(scope["headers"])
        caller = await self._admitted(scope, headers)
        path_params = scope.get("path_params")
        account, ids = named_in(path_params) if path_params else (None, NO_IDS)
        key = headers.get(b"idempotency-key") if self._takes_idempotency_key else None
        if key is not None and not _IDEMPOTENCY_KEY.fullmatch(key):
            raise Invalid(_INVALID_KEY)
        query = self._without_query
        if query is None or scope["query_string"]:
            query = read_query(scope["query_string"], self.operation.query)
        body, canonical = await deadline.excluding(self._body.read(headers, receive))
        idempotent = None
        if key is not None:
            idempotent = IdempotentCall(key.decode("ascii"), _fingerprint(scope, canonical))
        expected = expected_by(scope) if self._takes_if_match else None
        call: Call[Any, Any] = Call(caller, ids, body, query, expected, account, idempotent)
        rendered = await self.operation.run(self._context, call)
        if self._takes_if_none_match and is_known(scope, rendered):
            return not_modified(rendered)
        return rendered

    async def _admitted(self, scope: Scope, headers: Mapping[bytes, bytes]) -> Caller:
        """The caller, if it may make this call; checked before the body is read."""
        bearer = _BEARER.fullmatch(headers.get(b"authorization", b"").strip())
        if bearer is None:
            raise Unauthenticated
        client = scope.get("client")
        caller = await self._service.authenticate.caller(
            bearer[1].decode("ascii"), Interface.REST, client[0] if client else None
        )
        scope[CALLER] = caller.actor
        try:
            scope[_ALLOWANCE] = self._service.rate_limit.spend(caller)
        except RateLimited as limited:
            scope[_ALLOWANCE] = Allowance(limited.limit, 0, limited.retry_after_seconds)
            raise
        # The use cases check again.
        if self.operation.webhooks:
            caller.require_webhooks(self.operation.scope)
        else:
            caller.require(self.operation.scope)
        return caller

    def _render(self, reply: Reply) -> Rendered:
        body = b"" if reply.answer is None else _encode(reply.answer)
        location = None if reply.location is None else self._base_url + reply.location
        return Rendered(self.operation.status, body, location, version=reply.version)

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


def _fingerprint(scope: Scope, canonical: bytes) -> bytes:
    request = f"{scope['method']} {scope['path']}\n".encode()
    return hashlib.sha256(request + canonical).digest()


async def transmit(rendered: Rendered, scope: Scope, send: Send) -> None:
    headers = [*COMMON_HEADERS, *rendered.headers]
    allowance: Allowance | None = scope.get(_ALLOWANCE)
    if allowance is not None:
        headers.append((b"ratelimit-limit", b"%d" % allowance.limit))
        headers.append((b"ratelimit-remaining", b"%d" % allowance.remaining))
        headers.append((b"ratelimit-reset", b"%d" % allowance.reset_seconds))
    if rendered.status not in (NO_CONTENT, NOT_MODIFIED):
        headers.append((b"content-length", str(len(rendered.body)).encode()))
        media_type = b"application/problem+json" if rendered.status >= 400 else b"application/json"
        headers.append((b"content-type", media_type))
    if rendered.location is not None:
        headers.append((b"location", rendered.location.encode("ascii")))
    if rendered.version is not None:
        headers.append((b"etag", entity_tag(rendered.version).encode("ascii")))
    if rendered.replayed:
        headers.append((b"idempotency-replayed", b"true"))
    await send({"type": "http.response.start", "status": rendered.status, "headers": headers})
    body = b"" if scope["method"] == "HEAD" else rendered.body
    await send({"type": "http.response.body", "body": body})
