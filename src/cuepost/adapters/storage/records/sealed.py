"""All values in the store that are encrypted with a master key."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from cuepost.adapters.storage.records.keys import OWNED
from cuepost.adapters.storage.session import Records
from cuepost.adapters.storage.sql import Sql, quoted, sqlite_values
from cuepost.ports.sealed import SealedKind, SealedValue
from cuepost.ports.system import KEY_ID_BYTES


class _Place:
    """A column of sealed values, and the column with the id that each is bound to."""

    def __init__(self, table: str, sealed: str, owner: str) -> None:
        self.key = OWNED[table]
        # Not named key_id in the result, because that column name has the type UUID.
        key_id = f"substr({sealed}, 1, {KEY_ID_BYTES})"
        self.counts = Sql(
            f"""
            SELECT {key_id} AS sealed_with, count(*) AS count
            FROM {table} WHERE {sealed} IS NOT NULL GROUP BY {key_id}
            """
        )
        self.keys_of_account = Sql(
            f"""
            SELECT DISTINCT {key_id} AS sealed_with
            FROM {table} WHERE account_id = :account AND {sealed} IS NOT NULL
            """
        )
        chosen = f"SELECT {owner}, {sealed}, {quoted(self.key)} FROM {table}"
        # Hex, because both engines take a list of text as one parameter, but not a list of bytes.
        self.under = Sql(
            sqlite=f"""
                {chosen} WHERE lower(hex({key_id})) IN ({sqlite_values("key_ids")}) LIMIT :most
                """,
            postgresql=f"""
                {chosen} WHERE encode({key_id}, 'hex') = ANY (:key_ids) LIMIT :most
                """,
        )
        is_it = " AND ".join(f'"{column}" = :{column}' for column in self.key)
        self.replace = Sql(f"UPDATE {table} SET {sealed} = :new WHERE {is_it} AND {sealed} = :old")


PLACES: Mapping[SealedKind, _Place] = {
    SealedKind.SIGNING_SECRET: _Place("signing_secrets", "sealed", "webhook_id"),
    SealedKind.SECRET_REVEAL: _Place("secret_reveals", "sealed", "id"),
    SealedKind.INVITATION_MAIL: _Place("invitation_mails", "sealed", "id"),
    SealedKind.IDEMPOTENT_ANSWER: _Place("idempotency_keys", "sealed_answer", "key_id"),
}


class SealedRecords(Records):
    async def counts(self, kinds: Collection[SealedKind]) -> Mapping[bytes, int]:
        found: Counter[bytes] = Counter()
        for kind in kinds:
            found.update(dict(await self._session.offloaded.fetch(PLACES[kind].counts)))
        return found

    async def some_under(self, key_ids: Collection[bytes], limit: int) -> Sequence[SealedValue]:
        found: list[SealedValue] = []
        for kind, place in PLACES.items():
            if key_ids and len(found) < limit:
                rows = await self._session.offloaded.fetch(
                    place.under,
                    key_ids=[key_id.hex() for key_id in key_ids],
                    most=limit - len(found),
                )
                found += [
                    SealedValue(kind, tuple(key), owner, sealed) for owner, sealed, *key in rows
                ]
        return found

    async def replace(self, value: SealedValue, sealed: bytes) -> bool:
        place = PLACES[value.kind]
        key = dict(zip(place.key, value.row, strict=True))
        return await self._session.execute(place.replace, new=sealed, old=value.sealed, **key) > 0
