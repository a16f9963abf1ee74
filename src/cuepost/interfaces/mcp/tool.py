"""One tool as a value: the list that a key sees, the schemas and the tests iterate them."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from msgspec import Struct

from cuepost.application.service import Service
from cuepost.domain.access import Caller, Scope
from cuepost.domain.errors import MissingScope
from cuepost.interfaces.wire_models.shapes import Answer
from cuepost.ports.store import Transaction


class Arguments(Struct, frozen=True, forbid_unknown_fields=True):
    """What a tool is called with; names in snake_case, as in the names of the tools."""


# For tools that need no arguments; a docstring would be listed as a description of them.
class Nothing(Arguments, frozen=True):
    pass


@dataclass(frozen=True, slots=True)
class Work:
    """What a tool works with: the use cases, an open transaction, and who asks."""

    service: Service
    transaction: Transaction
    caller: Caller


A = TypeVar("A", bound=Arguments)
Run = Callable[[Work, A], Awaitable[Answer]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """`reads`: it changes nothing. `reaches_out`: it makes requests to receivers follow.

    `may_lag`: a replica may answer, and the answer says if that is behind.

    A destructive one takes `confirm_host`, and does nothing without the right one. Each is cut off
    after `CUEPOST_REQUEST_TIMEOUT`: none waits for a receiver.
    """

    name: str
    title: str
    description: str
    scope: Scope
    arguments: type[Arguments] = Nothing
    answer: type[Answer]
    reads: bool = False
    may_lag: bool = False
    destructive: bool = False
    idempotent: bool = False
    reaches_out: bool = False
    run: Run[Any]

    def allows(self, caller: Caller) -> bool:
        try:
            caller.require(self.scope)
        except MissingScope:
            return False
        return True
