"""All values that are encrypted with a master key, whichever table they are in."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol
from uuid import UUID


class SealedKind(StrEnum):
    SIGNING_SECRET = "signing secrets"
    SECRET_REVEAL = "secrets to be shown once"
    INVITATION_MAIL = "invitations to be sent by e-mail"
    IDEMPOTENT_ANSWER = "answers kept for Idempotency-Keys"


@dataclass(frozen=True, slots=True)
class SealedValue:
    """`row` is the primary key of its row; `owner` is the id that it was sealed for."""

    kind: SealedKind
    row: tuple[UUID | int | str, ...]
    owner: UUID
    sealed: bytes = field(repr=False)


class SealedValues(Protocol):
    async def counts(self, kinds: Collection[SealedKind]) -> Mapping[bytes, int]:
        """How many values each master key has sealed, by the key's id."""
        ...

    async def some_under(self, key_ids: Collection[bytes], limit: int) -> Sequence[SealedValue]: ...

    async def replace(self, value: SealedValue, sealed: bytes) -> bool:
        """Return False if the value was changed or deleted since it was read."""
        ...
