"""Everything that is stored under a master key, whichever record it belongs to."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol
from uuid import UUID


class SealedKind(StrEnum):
    SIGNING_SECRET = "signing secrets"
    SECRET_REVEAL = "secrets to be shown once"
    IDEMPOTENT_ANSWER = "answers kept for Idempotency-Keys"


@dataclass(frozen=True, slots=True)
class SealedValue:
    """`row` tells its row from others of its kind; `owner` is the id that it was sealed for."""

    kind: SealedKind
    row: tuple[UUID | int | str, ...]
    owner: UUID
    sealed: bytes = field(repr=False)


class SealedValues(Protocol):
    async def counts(self, kinds: Collection[SealedKind]) -> Mapping[bytes, int]:
        """How many there are under each master key, by the key's id."""
        ...

    async def some_under(self, key_ids: Collection[bytes], limit: int) -> Sequence[SealedValue]: ...

    async def replace(self, value: SealedValue, sealed: bytes) -> bool:
        """False if it has changed or gone meanwhile."""
        ...
