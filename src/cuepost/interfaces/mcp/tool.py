"""A tool as a value; the list of tools, schemas and tests are derived from it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from msgspec import Struct

from cuepost.application.service import Service
from cuepost.domain.access import Caller, Scope
from cuepost.domain.errors import Forbidden
from cuepost.interfaces.wire_models.shapes import ResponseModel
from cuepost.ports.store import Transaction


class Arguments(Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of a tool; names are in snake_case."""


# No docstring: it would appear in the schema as a description.
class NoArguments(Arguments, frozen=True):
    pass


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a tool runs with: the use cases, an open transaction and the caller."""

    service: Service
    transaction: Transaction
    caller: Caller


A = TypeVar("A", bound=Arguments)
Run = Callable[[ToolContext, A], Awaitable[ResponseModel]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """`reads`: changes nothing. `reaches_out`: causes requests to receivers.

    `may_lag`: may be read from a replica; a remark then says how old the result is.

    A destructive tool needs the right `confirm_host`. Every tool ends after
    `CUEPOST_REQUEST_TIMEOUT`; none waits for a receiver.
    """

    name: str
    title: str
    description: str
    scope: Scope
    arguments: type[Arguments] = NoArguments
    answer: type[ResponseModel]
    reads: bool = False
    may_lag: bool = False
    destructive: bool = False
    idempotent: bool = False
    reaches_out: bool = False
    run: Run[Any]

    def allows(self, caller: Caller) -> bool:
        try:
            caller.require(self.scope)
        except Forbidden:
            return False
        return True
