"""An API call as a value; routes, the OpenAPI document and tests are derived from it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from uuid import UUID

from cuepost.application.perform import IdempotentCall
from cuepost.application.service import Service
from cuepost.domain.access import Caller, Scope
from cuepost.domain.account_reference import AccountReference
from cuepost.domain.errors import Refused
from cuepost.domain.immutable import immutable
from cuepost.domain.version import Expected
from cuepost.interfaces.rest.answers import Rendered, Reply
from cuepost.interfaces.wire_models.shapes import Request, ResponseModel

Body = TypeVar("Body", bound=Request)
Query = TypeVar("Query", bound=Request)

KIB = 1024


class NoInput(Request, frozen=True):
    """The model of a missing body or query; every field is refused as unknown."""


@immutable
class Call(Generic[Body, Query]):
    """A validated request; `expected` are the versions in `If-Match`.

    `account` is the one that an operator's call names. `idempotent` is set if there is an
    Idempotency-Key.
    """

    caller: Caller
    ids: Mapping[str, UUID]
    body: Body
    query: Query
    expected: Expected = None
    account: AccountReference | None = None
    idempotent: IdempotentCall | None = None


@dataclass(frozen=True, slots=True)
class Context:
    """What handlers run with; the same for all requests of a call."""

    service: Service
    render: Callable[[Reply], Rendered]


Run = Callable[[Context, Call[Any, Any]], Awaitable[Rendered]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """`webhooks`: the account needs access to webhooks. `refusals`: errors specific to this call.

    `may_lag`: may be read from a replica; the response then says how old it is.
    `versioned`: concerns one webhook or project, and supports `ETag` and conditions.
    `has_deadline`: ends after `CUEPOST_REQUEST_TIMEOUT`.
    """

    method: str
    path: str
    name: str
    tag: str
    summary: str
    description: str = ""
    scope: Scope
    webhooks: bool = False
    query: type[Request] = NoInput
    body: type[Request] = NoInput
    body_limit: int = 64 * KIB
    status: int = 200
    answer: type[ResponseModel] | None
    refusals: tuple[type[Refused], ...] = ()
    may_lag: bool = False
    versioned: bool = False
    has_deadline: bool = True
    run: Run

    @property
    def takes_body(self) -> bool:
        return self.body is not NoInput

    @property
    def takes_idempotency_key(self) -> bool:
        return self.method == "POST"

    @property
    def answers_with_etag(self) -> bool:
        return self.versioned and self.answer is not None

    @property
    def takes_if_match(self) -> bool:
        return self.versioned and self.method != "GET" and "{" in self.path

    @property
    def takes_if_none_match(self) -> bool:
        return self.versioned and self.method == "GET"
