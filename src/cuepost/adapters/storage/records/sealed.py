"""What is sealed under master keys, over all tables that hold such values."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from cuepost.adapters.storage.session import Session
from cuepost.adapters.storage.tables import idempotency_keys, secret_reveals, signing_secrets
from cuepost.ports.runtime import KEY_ID_BYTES
from cuepost.ports.sealed import SealedKind, SealedValue


@dataclass(frozen=True, slots=True)
class _Place:
    table: sa.Table
    sealed: sa.Column[bytes]
    owner: sa.Column[UUID]

    @property
    def key_id(self) -> sa.ColumnElement[bytes]:
        return sa.func.substr(self.sealed, 1, KEY_ID_BYTES, type_=sa.LargeBinary)


PLACES: Mapping[SealedKind, _Place] = {
    SealedKind.SIGNING_SECRET: _Place(
        signing_secrets, signing_secrets.c.sealed, signing_secrets.c.webhook_id
    ),
    SealedKind.SECRET_REVEAL: _Place(secret_reveals, secret_reveals.c.sealed, secret_reveals.c.id),
    SealedKind.IDEMPOTENT_ANSWER: _Place(
        idempotency_keys, idempotency_keys.c.sealed_answer, idempotency_keys.c.key_id
    ),
}


class SealedRecords:
    def __init__(self, session: Session) -> None:
        self._session = session

    async def counts(self, kinds: Collection[SealedKind]) -> Mapping[bytes, int]:
        found: Counter[bytes] = Counter()
        for place in map(PLACES.__getitem__, kinds):
            key_id = place.key_id.label("key_id")
            rows = await self._session.unhurried.all(
                sa.select(key_id, sa.func.count().label("amount"))
                .where(place.sealed.is_not(None))
                .group_by(key_id)
            )
            found.update({bytes(row.key_id): int(row.amount) for row in rows})
        return found

    async def some_under(self, key_ids: Collection[bytes], limit: int) -> Sequence[SealedValue]:
        found: list[SealedValue] = []
        for kind, place in PLACES.items():
            if key_ids and len(found) < limit:
                key = list(place.table.primary_key.columns)
                rows: Sequence[Sequence[Any]] = await self._session.unhurried.all(
                    sa.select(place.owner, place.sealed, *key)
                    .where(place.key_id.in_(key_ids))
                    .limit(limit - len(found))
                )
                found += [SealedValue(kind, tuple(row[2:]), row[0], row[1]) for row in rows]
        return found

    async def replace(self, value: SealedValue, sealed: bytes) -> bool:
        place = PLACES[value.kind]
        key = zip(place.table.primary_key.columns, value.row, strict=True)
        changed = await self._session.run(
            sa.update(place.table)
            .where(*(column == part for column, part in key), place.sealed == value.sealed)
            .values({place.sealed: sealed})
        )
        return changed > 0
