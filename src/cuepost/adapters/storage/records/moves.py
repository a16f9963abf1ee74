"""Accounts that move to or from another database."""

from collections.abc import AsyncIterator, Collection
from uuid import UUID

from cuepost.adapters.storage import schema
from cuepost.adapters.storage.records import moved_rows
from cuepost.adapters.storage.records.access import ACCOUNT_COLUMNS, account_of, erase_rows
from cuepost.adapters.storage.records.parking import PARK, PARKED_FROM, UNPARK
from cuepost.adapters.storage.records.sealed import PLACES
from cuepost.adapters.storage.session import Records, Rows, account_number
from cuepost.adapters.storage.sql import Sql
from cuepost.domain.access import Account, AccountState
from cuepost.domain.account_reference import search_key
from cuepost.ports.moves import Chunk, Move

_LOCKED = Sql(f"SELECT {ACCOUNT_COLUMNS} FROM accounts WHERE id = :account_id FOR UPDATE")
_SET_STATE = Sql("UPDATE accounts SET state = :state WHERE id = :account_id")
_MOVE = Sql(
    """
    SELECT account_id, digest, created_at, token, run_id
    FROM account_moves WHERE account_id = :account_id
    """
)
_PUT = Sql(
    """
    INSERT INTO account_moves (account_id, digest, created_at, token, run_id)
    VALUES (:account_id, :digest, :started_at, :code, :run_id)
    ON CONFLICT (account_id) DO UPDATE
    SET digest = excluded.digest, created_at = excluded.created_at,
        token = excluded.token, run_id = excluded.run_id
    """
)
_END = Sql("DELETE FROM account_moves WHERE account_id = :account_id")
_RUN = Sql("SELECT run_id FROM account_moves WHERE account_id = :account_id FOR SHARE")
# Includes deliveries in flight, which keep the due time of their claim.
_UNPARKED = Sql(
    "SELECT count(*) AS count FROM queue WHERE account = :account AND due_at < :parked_from"
)
_DELETED = Sql(
    """
    SELECT id FROM endpoints WHERE account_id = :account_id AND deleted_at IS NOT NULL LIMIT 1
    """
)
# Kept after an account has moved, so that requests for it can be answered with that.
_KEPT_TABLES = ("account_moves", "api_keys", "projects")
_ERASE_NAMES = Sql(
    """
    UPDATE projects SET name = '', search_name = '' WHERE account_id = :account_id AND id IN (
        SELECT id FROM projects WHERE account_id = :account_id AND name != '' LIMIT :most
    )
    """
)


class AccountMoveRecords(Records):
    @property
    def revision(self) -> str:
        return schema.revisions()[-1]

    async def lock(self, account_id: UUID) -> Account | None:
        rows = await self._session.fetch(_LOCKED, account_id=account_id)
        return account_of(rows[0]) if rows else None

    async def get(self, account_id: UUID) -> Move | None:
        rows = await self._session.fetch(_MOVE, account_id=account_id)
        return Move(*rows[0]) if rows else None

    async def put(self, move: Move) -> None:
        await self._session.execute(
            _PUT,
            account_id=move.account_id,
            digest=move.digest,
            started_at=move.started_at,
            code=move.code,
            run_id=move.run_id,
        )

    async def end(self, account_id: UUID) -> None:
        await self._session.execute(_END, account_id=account_id)

    async def set_state(self, account_id: UUID, state: AccountState) -> None:
        await self._session.execute(_SET_STATE, account_id=account_id, state=state.value)

    async def park(self, account_id: UUID) -> None:
        await self._shift(PARK, account_id)

    async def unpark(self, account_id: UUID) -> None:
        await self._shift(UNPARK, account_id)

    async def unparked(self, account_id: UUID) -> int:
        number = await account_number(self._session, account_id)
        [(count,)] = await self._session.fetch(_UNPARKED, account=number, parked_from=PARKED_FROM)
        return int(count)

    async def has_deleted_endpoints(self, account_id: UUID) -> bool:
        return bool(await self._session.fetch(_DELETED, account_id=account_id))

    def chunks(self, account_id: UUID) -> AsyncIterator[Chunk]:
        return moved_rows.chunks(self._session.offloaded, account_id)

    async def receive(self, account: Account) -> None:
        facts = {
            "id": account.id,
            "name": account.name,
            "webhooks_enabled": account.webhooks_enabled,
            "created_at": account.created_at,
            "state": AccountState.ARRIVING.value,
            "external_id": account.external_id,
            "search_name": search_key(account.name),
        }
        if await self.lock(account.id) is None:
            await self._session.insert("accounts", [facts])
        else:
            await self._session.update("accounts", ("id",), [facts])

    async def load(self, account_id: UUID, chunk: Chunk) -> None:
        rows = await moved_rows.rows_of(self._session.offloaded, account_id, chunk)
        await self._prepare_days(chunk.table, rows)
        await self._session.offloaded.insert(chunk.table, rows)

    async def _prepare_days(self, table: str, rows: Rows) -> None:
        """Create the days that these rows need, if this engine divides its tables by days."""

    async def sealed_under(self, account_id: UUID) -> Collection[bytes]:
        found: set[bytes] = set()
        for place in PLACES.values():
            rows = await self._session.offloaded.fetch(place.keys_of_account, account=account_id)
            found.update(bytes(key_id) for (key_id,) in rows)
        return found

    async def is_loaded_by(self, account_id: UUID, run_id: UUID) -> bool:
        rows = await self._session.fetch(_RUN, account_id=account_id)
        return bool(rows) and rows[0][0] == run_id

    async def erase_some(self, account_id: UUID, rows: int, *, refusing: bool) -> bool:
        kept = _KEPT_TABLES if refusing else _KEPT_TABLES[:1]
        removed = await erase_rows(self._session, account_id, rows, kept)
        if refusing:
            removed += await self._session.offloaded.execute(
                _ERASE_NAMES, account_id=account_id, most=rows
            )
        return removed == 0

    async def _shift(self, how: Sql, account_id: UUID) -> None:
        number = await account_number(self._session, account_id)
        await self._session.offloaded.execute(how, account=number, parked_from=PARKED_FROM)
