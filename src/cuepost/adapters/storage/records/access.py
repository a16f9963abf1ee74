"""Accounts and API keys."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from cuepost.adapters.storage.records.numbers import account_number
from cuepost.adapters.storage.session import Session
from cuepost.adapters.storage.statements import Prepared
from cuepost.adapters.storage.tables import accounts, api_keys, metadata
from cuepost.adapters.storage.types import Instant
from cuepost.domain.access import Account, ApiKey, Scope

_COLUMNS = tuple(column for column in accounts.c if column is not accounts.c.number)
_ONE = sa.select(*_COLUMNS).where(accounts.c.id == sa.bindparam("account_id"))
_ACCOUNT = Prepared(_ONE)
_HELD_ACCOUNT = Prepared(_ONE.with_for_update(read=True))
_LOCKED_ACCOUNT = Prepared(_ONE.with_for_update())
_IS_KEY = api_keys.c.id == sa.bindparam("key_id")
_KEY = Prepared(sa.select(api_keys).where(_IS_KEY))
_TOUCH_KEY = Prepared(
    sa.update(api_keys).where(_IS_KEY).values(last_used_at=sa.bindparam("now", type_=Instant))
)


class AccountRecords:
    def __init__(self, session: Session) -> None:
        self._session = session

    async def add(self, account: Account) -> None:
        await self._session.insert(
            accounts,
            [
                {
                    "id": account.id,
                    "name": account.name,
                    "webhooks_enabled": account.webhooks_enabled,
                    "created_at": account.created_at,
                }
            ],
        )

    async def get(self, account_id: UUID) -> Account | None:
        return await self._fetched(_ACCOUNT, account_id)

    async def hold(self, account_id: UUID) -> Account | None:
        return await self._fetched(_HELD_ACCOUNT, account_id)

    async def lock(self, account_id: UUID) -> Account | None:
        return await self._fetched(_LOCKED_ACCOUNT, account_id)

    async def _fetched(self, statement: Prepared, account_id: UUID) -> Account | None:
        rows = await self._session.fetch(statement, account_id=account_id)
        return Account(*rows[0]) if rows else None

    async def all(self) -> list[Account]:
        rows = await self._session.all(sa.select(accounts).order_by(accounts.c.id))
        return [Account(row.id, row.name, row.webhooks_enabled, row.created_at) for row in rows]

    async def set_access(self, account_id: UUID, enabled: bool) -> None:
        await self._session.run(
            sa.update(accounts).where(accounts.c.id == account_id).values(webhooks_enabled=enabled)
        )

    async def erase_some(self, account_id: UUID, rows: int) -> bool:
        removed = 0
        number = await account_number(self._session, account_id)
        for table in metadata.sorted_tables:
            owner = {"account_id": account_id, "account": number}
            for column, value in owner.items():
                if column in table.c:
                    deleting = _delete_some(table, table.c[column] == value, rows)
                    removed += await self._session.unhurried.run(deleting)
        if removed:
            return False
        await self._session.run(sa.delete(accounts).where(accounts.c.id == account_id))
        return True


class KeyRecords:
    def __init__(self, session: Session) -> None:
        self._session = session

    async def add(self, key: ApiKey) -> None:
        await self._session.insert(
            api_keys,
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
        rows = await self._session.all(
            sa.select(api_keys)
            .where(api_keys.c.account_id.is_not_distinct_from(account_id))
            .order_by(api_keys.c.id)
        )
        return [_key(row) for row in rows]

    async def revoke(self, key_id: UUID, now: datetime) -> None:
        await self._session.run(
            sa.update(api_keys)
            .where(api_keys.c.id == key_id, api_keys.c.revoked_at.is_(None))
            .values(revoked_at=now)
        )

    async def touch(self, key_id: UUID, now: datetime) -> None:
        await self._session.fetch(_TOUCH_KEY, key_id=key_id, now=now)


def _delete_some(table: sa.Table, is_owned: sa.ColumnElement[bool], rows: int) -> sa.Delete:
    key = tuple(table.primary_key.columns)
    chosen = sa.select(*key).where(is_owned).limit(rows)
    return sa.delete(table).where(is_owned, sa.tuple_(*key).in_(chosen.correlate(None)))


def _key(row: Sequence[Any]) -> ApiKey:
    identifier, account_id, name, digest, scopes, *instants = row
    held = frozenset(Scope(scope) for scope in scopes.split())
    return ApiKey(identifier, account_id, name, digest, held, *instants)
