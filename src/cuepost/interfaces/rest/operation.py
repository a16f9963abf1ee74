"""One call of the API as a value: the routes, the OpenAPI document and the tests iterate them."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from uuid import UUID

from cuepost.application.perform import IdempotentCall
from cuepost.application.service import Service
from cuepost.domain.access import Caller, Scope
from cuepost.domain.errors import Refused
from cuepost.domain.version import Expected
from cuepost.interfaces.rest.answers import Rendered, Reply
from cuepost.interfaces.wire_models.shapes import Answer, Request

Body = TypeVar("Body", bound=Request)
Query = TypeVar("Query", bound=Request)

KIB = 1024


class Nothing(Request, frozen=True):
    """For calls without a body or without query parameters: whatever comes is refused by name."""


@dataclass(frozen=True, slots=True)
class Call(Generic[Body, Query]):
    """A request that passed the handler: who asks, for what, with what, and for which version."""

    caller: Caller
    ids: Mapping[str, UUID]
    body: Body
    query: Query
    expected: Expected = None


@dataclass(frozen=True, slots=True)
class Context:
    """What a call is carried out with; `idempotent` when it bears an Idempotency-Key."""

    service: Service
    render: Callable[[Reply], Rendered]
    idempotent: IdempotentCall | None


Run = Callable[[Context, Call[Any, Any]], Awaitable[Rendered]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """`webhooks`: the account must have access to them. `refusals`: those of this call alone.

    `may_lag`: a replica may answer, and say how old the answer is.
    `versioned`: it is about one webhook or project, of which `ETag` and conditions speak.
    `has_deadline`: it is cut off after `CUEPOST_REQUEST_TIMEOUT`.
    """

    method: str
    path: str
    name: str
    tag: str
    summary: str
    description: str = ""
    scope: Scope
    webhooks: bool = False
    query: type[Request] = Nothing
    body: type[Request] = Nothing
    body_limit: int = 64 * KIB
    status: int = 200
    answer: type[Answer] | None
    refusals: tuple[type[Refused], ...] = ()
    may_lag: bool = False
    versioned: bool = False
    has_deadline: bool = True
    run: Run

    @property
    def takes_body(self) -> bool:
        return self.body is not Nothing

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
