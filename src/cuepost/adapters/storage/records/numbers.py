"""The numbers by which history refers to accounts and endpoints."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from uuid import UUID

from cuepost.adapters.storage.session import StoreSession
from cuepost.adapters.storage.sql import Sql

_ACCOUNTS = Sql("SELECT id, number FROM accounts WHERE id IN :ids")
_ENDPOINTS = Sql("SELECT id, number FROM endpoints WHERE account_id IN :accounts AND id IN :ids")
_OF_ACCOUNT = Sql(
    """
    SELECT accounts.number, endpoints.number, endpoints.id, endpoints.deleted_at IS NOT NULL
    FROM accounts LEFT JOIN endpoints ON endpoints.account_id = accounts.id
    WHERE accounts.id = :account
    """
)
_MISSING = 0
"""No account and no endpoint has this number, so a search for it finds nothing."""


@dataclass(frozen=True, slots=True)
class AccountNumbers:
    """The numbers of an account and all its endpoints, including deleted ones."""

    account: int
    endpoint_of: dict[UUID, int]
    webhook_of: dict[int, UUID]
    deleted: frozenset[int]

    def endpoint(self, webhook_id: UUID) -> int:
        """For an unknown endpoint, a number that no delivery has."""
        return self.endpoint_of.get(webhook_id, _MISSING)


async def numbers_of(session: StoreSession, account_id: UUID) -> AccountNumbers:
    rows = await session.fetch(_OF_ACCOUNT, account=account_id)
    known = [(endpoint, webhook_id) for _, endpoint, webhook_id, _ in rows if webhook_id]
    return AccountNumbers(
        account=rows[0][0] if rows else _MISSING,
        endpoint_of={webhook_id: endpoint for endpoint, webhook_id in known},
        webhook_of=dict(known),
        deleted=frozenset(endpoint for _, endpoint, _, is_deleted in rows if is_deleted),
    )


async def account_number(session: StoreSession, account_id: UUID) -> int:
    return (await account_numbers(session, [account_id])).get(account_id, _MISSING)


async def account_numbers(session: StoreSession, ids: Collection[UUID]) -> dict[UUID, int]:
    known = session.numbers.accounts
    unknown = [each for each in dict.fromkeys(ids) if each not in known]
    if unknown:
        known.update(await session.fetch(_ACCOUNTS, ids=unknown))
    return known


async def endpoint_numbers(
    session: StoreSession, keys: Iterable[tuple[UUID, UUID]]
) -> dict[UUID, int]:
    """`keys` are pairs of account and endpoint."""
    known = session.numbers.endpoints
    unknown = {key for key in keys if key[1] not in known}
    if unknown:
        account_ids, ids = zip(*unknown, strict=True)
        known.update(await session.fetch(_ENDPOINTS, accounts=set(account_ids), ids=ids))
    return known
