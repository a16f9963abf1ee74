"""The responses of each call: success, and every error with its codes and headers."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from cuepost.domain.access import Scope
from cuepost.domain.errors import (
    AccountMoved,
    AccountMoving,
    IdempotencyKeyReused,
    Invalid,
    MissingScope,
    NotFound,
    PreconditionFailed,
    RateLimited,
    Refused,
    Unauthenticated,
    WebhooksNotEnabled,
    WrongKindOfKey,
)
from cuepost.interfaces.rest.openapi.examples import example_of
from cuepost.interfaces.rest.openapi.links import links_of
from cuepost.interfaces.rest.openapi.portable import Schema
from cuepost.interfaces.rest.openapi.schemas import PROBLEM, component_name, ref
from cuepost.interfaces.rest.operation import NoInput, Operation
from cuepost.interfaces.rest.problems import MEDIA_TYPE, status_of

_HEADER_REF = "#/components/headers/"
_RESPONSE_REF = "#/components/responses/"
_REQUEST_ID = "X-Request-Id"
_ALLOWANCE = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")
INVALID = 422
TOO_LONG = 414
_MEANINGS = {
    200: "Success.",
    201: "Created.",
    202: "Accepted; it is processed in the background.",
    204: "Deleted.",
    304: "Not modified.",
    400: "The body is not valid JSON.",
    401: "The API key is missing or not valid.",
    403: "The API key does not allow this.",
    404: "Not found in this account.",
    409: "The current state does not allow this.",
    410: "Gone: it existed, but does not any more.",
    412: "The object has none of the versions in `If-Match`; nothing was changed.",
    413: "The body is too large.",
    414: "The address with its query is too long.",
    415: "The body is not `application/json`.",
    422: "The request is not valid.",
    429: "Too many requests with this API key.",
    503: "The store is not available, or the account is being moved; `detail` says whether "
    "a change may have been made.",
}


def headers() -> dict[str, Schema]:
    return {
        "X-Request-Id": _header("string", "The request id from the request, or a new one."),
        "RateLimit-Limit": _header("integer", "Requests per minute that this key may send."),
        "RateLimit-Remaining": _header("integer", "Requests that remain."),
        "RateLimit-Reset": _header("integer", "Seconds until the limit is fully restored."),
        "Retry-After": _header("integer", "Seconds to wait."),
        "WWW-Authenticate": _header("string", "Always `Bearer`."),
        "ETag": _header("string", "The version of the webhook or project, for `If-Match`."),
        "Replica-Lag": _header(
            "integer", "Age of the data in seconds; only if it was read from a replica that lags."
        ),
        "Location": _header("string", "The URL of the created object.", format="uri"),
        "Idempotency-Replayed": _header(
            "string", "`true` if this is a repeated earlier response.", const="true"
        ),
    }


def problem_responses(operations: Sequence[Operation]) -> dict[str, Schema]:
    """The problem responses of all calls, by component name."""
    return {
        _component(status, codes): _problem_response(status, codes)
        for operation in operations
        for status, codes in codes_of(operation).items()
    }


def responses_of(operation: Operation, operations: Sequence[Operation]) -> dict[str, Any]:
    refused = {
        str(status): {"$ref": _RESPONSE_REF + _component(status, codes)}
        for status, codes in sorted(codes_of(operation).items())
    }
    known = {"304": _not_modified()} if operation.takes_if_none_match else {}
    return {str(operation.status): _success(operation, operations), **known, **refused}


def codes_of(operation: Operation) -> dict[int, list[str]]:
    """Every error status of this call, with its possible codes."""
    kinds: list[type[Refused]] = [
        *(Unauthenticated, MissingScope, WrongKindOfKey),
        *(RateLimited, Invalid),
    ]
    kinds.append(AccountMoving)
    if operation.scope is not Scope.MILESTONES_REPORT:
        kinds.append(AccountMoved)
    if operation.webhooks:
        kinds.append(WebhooksNotEnabled)
    if "{" in operation.path:
        kinds.append(NotFound)
    if operation.takes_idempotency_key:
        kinds.append(IdempotencyKeyReused)
    if operation.takes_if_match:
        kinds.append(PreconditionFailed)
    codes: defaultdict[int, list[str]] = defaultdict(list)
    for kind in (*kinds, *operation.refusals):
        codes[status_of(kind)].append(kind.code)
    codes[503].append("store_unavailable")
    if operation.query is not NoInput:
        codes[414].append("request_line_too_long")
    if operation.method in ("POST", "PATCH"):
        codes[400] += ["malformed_json", "duplicate_key"]
        codes[413].append("payload_too_large")
        codes[415].append("unsupported_media_type")
    return dict(codes)


def _success(operation: Operation, operations: Sequence[Operation]) -> Schema:
    names = [_REQUEST_ID, *_ALLOWANCE]
    if operation.answers_with_etag:
        names.append("ETag")
    if operation.may_lag:
        names.append("Replica-Lag")
    if operation.status in (201, 202):
        names.append("Location")
    if operation.takes_idempotency_key:
        names.append("Idempotency-Replayed")
    response: Schema = {"description": _MEANINGS[operation.status], "headers": _refs(names)}
    if operation.answer is not None:
        content: Schema = {"schema": ref(component_name(operation.answer))}
        if (example := example_of(operation.answer)) is not None:
            content["example"] = example
        response["content"] = {"application/json": content}
    if links := links_of(operation, operations):
        response["links"] = links
    return response


def _not_modified() -> Schema:
    return {"description": _MEANINGS[304], "headers": _refs([_REQUEST_ID, *_ALLOWANCE, "ETag"])}


def _component(status: int, codes: list[str]) -> str:
    return ".".join((str(status), *codes))


def _problem_response(status: int, codes: list[str]) -> Schema:
    names = _headers_with_every(status)
    names += {401: ["WWW-Authenticate"], 429: ["Retry-After"], 503: ["Retry-After"]}.get(status, [])
    listed = ", ".join(f"`{code}`" for code in codes)
    if status == INVALID:
        listed += "; with a single field error, the code of that error"
    return {
        "description": f"{_MEANINGS[status]} Code: {listed}.",
        "headers": _refs(names),
        "content": {MEDIA_TYPE: {"schema": ref(PROBLEM)}},
    }


def _headers_with_every(status: int) -> list[str]:
    """A request line that is too long is refused before the request has an id."""
    if status == TOO_LONG:
        return []
    return [_REQUEST_ID] if status in (401, 503) else [_REQUEST_ID, *_ALLOWANCE]


def _refs(names: list[str]) -> dict[str, Schema]:
    return {name: {"$ref": _HEADER_REF + name} for name in names}


def _header(kind: str, description: str, **more: str) -> Schema:
    return {"description": description, "schema": {"type": kind, **more}}
