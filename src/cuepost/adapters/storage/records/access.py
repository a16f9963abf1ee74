"""Accounts and API keys."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from cuepost.adapters.storage.records import paging
from cuepost.adapters.storage.records.keys import OWNED, owner_in
from cuepost.adapters.storage.session import Records, StoreSession, account_number
from cuepost.adapters.storage.sql import Sql, quoted
from cuepost.domain.access import Account, AccountState, ApiKey, Scope
from cuepost.domain.account_reference import search_key
from cuepost.ports.records import AccountSearch, Page, SearchedBy

ACCOUNT_COLUMNS = "id, name, webhooks_enabled, created_at, state, external_id, erasing_since"
_FROM_ACCOUNTS = f"SELECT {ACCOUNT_COLUMNS} FROM accounts"
_ONE = f"{_FROM_ACCOUNTS} WHERE id = :account_id"
_ACCOUNT = Sql(_ONE)
_HELD_ACCOUNT = Sql(f"{_ONE} FOR SHARE")
_LOCKED_ACCOUNT = Sql(f"{_ONE} FOR UPDATE")
_OLDEST = Sql(f"{_FROM_ACCOUNTS} ORDER BY id LIMIT :most")
_BY_EXTERNAL_ID = Sql(f"{_FROM_ACCOUNTS} WHERE external_id = :its_id")
_PAGE = paging.pages(f"{_FROM_ACCOUNTS} WHERE true")


def _beginning_with(column: str, order: str) -> Sql:
    """In the order of the column; the bounds are texts, so that an index serves both."""
    return Sql(
        f"""
        {_FROM_ACCOUNTS}
        WHERE ({column}, id) > (:after::text, :after_id::uuid) AND {column} < :ending::text
        ORDER BY {order} LIMIT :most
        """
    )


_FOUND: Mapping[SearchedBy, Sql] = {
    SearchedBy.NAME: _beginning_with("search_name", "search_name, id"),
    SearchedBy.EXTERNAL_ID: _beginning_with("external_id", "external_id"),
}
_SET_ERASING = Sql("UPDATE accounts SET erasing_since = :now WHERE id = :account_id")
_ERASING = Sql(
    """
    SELECT id FROM accounts WHERE erasing_since IS NOT NULL ORDER BY erasing_since LIMIT :most
    """
)
_WITHOUT_SEARCH_NAME = Sql(
    "SELECT id, name FROM accounts WHERE search_name IS NULL ORDER BY id LIMIT :most"
)
_SET_ACCESS = Sql("UPDATE accounts SET webhooks_enabled = :enabled WHERE id = :account_id")
# A move of an account locks its row for update, and thus waits for this lock.
_STATES = Sql("SELECT id, state FROM accounts WHERE id IN :account_ids FOR KEY SHARE")
_DELETE_ACCOUNT = Sql("DELETE FROM accounts WHERE id = :account_id")


def _deletion(table: str) -> Sql:
    """Deletes some rows of an account."""
    key, owner = quoted(OWNED[table]), owner_in(table)
    chosen = f"SELECT {key} FROM {table} WHERE {owner} = :{owner} LIMIT :most"
    return Sql(f"DELETE FROM {table} WHERE {owner} = :{owner} AND ({key}) IN ({chosen})")


_DELETIONS: Mapping[str, Sql] = {table: _deletion(table) for table in OWNED}


async def erase_rows(
    session: StoreSession, account_id: UUID, most: int, kept: Collection[str] = ()
) -> int:
    """Deletes up to `most` rows of an account from each table that is not in `kept`."""
    number = await account_number(session, account_id)
    removed = 0
    for table, deletion in _DELETIONS.items():
        if table not in kept:
            removed += await session.offloaded.execute(
                deletion, account_id=account_id, account=number, most=most
            )
    return removed


_FROM_KEYS = """
    SELECT id, account_id, name, digest, scopes, created_at, expires_at, revoked_at, last_used_at
    FROM api_keys
    """
_KEY = Sql(f"{_FROM_KEYS} WHERE id = :key_id")
# Service keys have no account.
_ALL_KEYS = Sql(
    sqlite=f"{_FROM_KEYS} WHERE account_id IS :account_id ORDER BY id",
    postgresql=f"{_FROM_KEYS} WHERE account_id IS NOT DISTINCT FROM :account_id ORDER BY id",
)
_KEYS = paging.pages(f"{_FROM_KEYS} WHERE true")
_KEYS_OF_ACCOUNT = paging.pages(f"{_FROM_KEYS} WHERE account_id = :account_id")
_REVOKE_KEYS = Sql(
    "UPDATE api_keys SET revoked_at = :now WHERE account_id = :account_id AND revoked_at IS NULL"
)
_REVOKE_KEY = Sql("UPDATE api_keys SET revoked_at = :now WHERE id = :key_id AND revoked_at IS NULL")
_TOUCH_KEY = Sql("UPDATE api_keys SET last_used_at = :now WHERE id = :key_id")


class AccountRecords(Records):
    async def add(self, account: Account) -> None:
        await self._session.insert(
            "accounts",
            [
                {
                    "id": account.id,
                    "name": account.name,
                    "webhooks_enabled": account.webhooks_enabled,
                    "created_at": account.created_at,
                    "external_id": account.external_id,
                    "search_name": search_key(account.name),
                }
            ],
        )

    async def save(self, account: Account) -> None:
        facts = {
            "id": account.id,
            "name": account.name,
            "external_id": account.external_id,
            "search_name": search_key(account.name),
        }
        await self._session.update("accounts", ("id",), [facts])

    async def get(self, account_id: UUID) -> Account | None:
        return await self._fetched(_ACCOUNT, account_id)

    async def hold(self, account_id: UUID) -> Account | None:
        return await self._fetched(_HELD_ACCOUNT, account_id)

    async def lock(self, account_id: UUID) -> Account | None:
        return await self._fetched(_LOCKED_ACCOUNT, account_id)

    async def _fetched(self, statement: Sql, account_id: UUID) -> Account | None:
        rows = await self._session.fetch(statement, account_id=account_id)
        return account_of(rows[0]) if rows else None

    async def oldest(self, limit: int) -> list[Account]:
        rows = await self._session.offloaded.fetch(_OLDEST, most=limit)
        return [account_of(row) for row in rows]

    async def by_external_id(self, external_id: str) -> Account | None:
        rows = await self._session.fetch(_BY_EXTERNAL_ID, its_id=external_id)
        return account_of(rows[0]) if rows else None

    async def page(self, page: Page) -> list[Account]:
        rows = await self._session.offloaded.fetch(_PAGE, **paging.bounds(page))
        return [account_of(row) for row in rows]

    async def search(self, search: AccountSearch) -> list[Account]:
        after, after_id = search.after or (search.prefix, UUID(int=0))
        rows = await self._session.offloaded.fetch(
            _FOUND[search.by],
            after=max(after, search.prefix),
            after_id=after_id,
            ending=search.prefix + paging.LAST,
            most=search.limit,
        )
        return [account_of(row) for row in rows]

    async def name_for_search(self, limit: int) -> bool:
        rows = await self._session.fetch(_WITHOUT_SEARCH_NAME, most=limit)
        named = [{"id": each, "search_name": search_key(name)} for each, name in rows]
        if named:
            await self._session.update("accounts", ("id",), named)
        return bool(named)

    async def lacks_search_names(self) -> bool:
        return bool(await self._session.fetch(_WITHOUT_SEARCH_NAME, most=1))

    async def start_erasing(self, account_id: UUID, now: datetime) -> None:
        await self._session.execute(_SET_ERASING, account_id=account_id, now=now)

    async def erasing(self, limit: int) -> list[UUID]:
        return [each for (each,) in await self._session.fetch(_ERASING, most=limit)]

    async def not_live(self, account_ids: Collection[UUID]) -> Mapping[UUID, AccountState]:
        states = self._session.numbers.states
        unknown = [each for each in account_ids if each not in states]
        if unknown:
            states |= dict(await self._session.fetch(_STATES, account_ids=unknown))
        found = {each: states[each] for each in account_ids if each in states}
        return {
            each: AccountState(state) for each, state in found.items() if state != AccountState.LIVE
        }

    async def set_access(self, account_id: UUID, enabled: bool) -> None:
        await self._session.execute(_SET_ACCESS, account_id=account_id, enabled=enabled)

    async def erase_some(self, account_id: UUID, rows: int) -> bool:
        if await erase_rows(self._session, account_id, rows):
            return False
        await self._session.execute(_DELETE_ACCOUNT, account_id=account_id)
        return True


class KeyRecords(Records):
    async def add(self, key: ApiKey) -> None:
        await self._session.insert(
            "api_keys",
            [
                {
                    "id": key.id,
                    "account_id": key.account_id,
                    "name": key.name,
                    "digest": key.digest,
                    "scopes": " ".join(sorted(key.scopes)),
                    "created_at": key.created_at,
                    "expires_at": key.expires_at,
                    "revoked_at": key.revoked_at,
                    "last_used_at": key.last_used_at,
                }
            ],
        )

    async def get(self, key_id: UUID) -> ApiKey | None:
        rows = await self._session.fetch(_KEY, key_id=key_id)
        return _key(rows[0]) if rows else None

    async def all(self, account_id: UUID | None) -> list[ApiKey]:
        rows = await self._session.offloaded.fetch(_ALL_KEYS, account_id=account_id)
        return [_key(row) for row in rows]

    async def page(self, account_id: UUID, page: Page) -> list[ApiKey]:
        rows = await self._session.offloaded.fetch(
            _KEYS_OF_ACCOUNT, account_id=account_id, **paging.bounds(page)
        )
        return [_key(row) for row in rows]

    async def page_of_all(self, page: Page) -> list[ApiKey]:
        rows = await self._session.offloaded.fetch(_KEYS, **paging.bounds(page))
        return [_key(row) for row in rows]

    async def revoke_all(self, account_id: UUID, now: datetime) -> None:
        await self._session.execute(_REVOKE_KEYS, account_id=account_id, now=now)

    async def revoke(self, key_id: UUID, now: datetime) -> None:
        await self._session.execute(_REVOKE_KEY, key_id=key_id, now=now)

    async def touch(self, key_id: UUID, now: datetime) -> None:
        await self._session.execute(_TOUCH_KEY, key_id=key_id, now=now)


def account_of(row: Sequence[Any]) -> Account:
    account_id, name, webhooks_enabled, created_at, state, *others = row
    return Account(account_id, name, webhooks_enabled, created_at, AccountState(state), *others)


def _key(row: Sequence[Any]) -> ApiKey:
    identifier, account_id, name, digest, scopes, *instants = row
    held = frozenset(Scope(scope) for scope in scopes.split())
    return ApiKey(identifier, account_id, name, digest, held, *instants)
