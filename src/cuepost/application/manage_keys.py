"""API keys for their account: create with scopes, list, revoke."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from cuepost.application.access import ManageAccess, NewKey
from cuepost.domain.access import ApiKey, Caller, Scope
from cuepost.domain.errors import FieldError, Invalid, NotFound
from cuepost.ports.store import Transaction

LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class ManageKeys:
    """A key grants access as a member's role does, so both need the same scope.

    A caller cannot create a key with scopes that it does not have.
    """

    access: ManageAccess

    async def all(self, transaction: Transaction, caller: Caller) -> list[ApiKey]:
        """The keys of the account, newest first."""
        caller.require(Scope.WEBHOOKS_MANAGE)
        return (await transaction.keys.all(caller.account))[::-1]

    async def create(
        self,
        transaction: Transaction,
        caller: Caller,
        *,
        name: str,
        scopes: Iterable[Scope],
        expires_at: datetime | None,
    ) -> NewKey:
        chosen, name = frozenset(scopes), name.strip()
        for scope in (Scope.MEMBERS_MANAGE, *chosen):
            caller.require(scope)
        if not 1 <= len(name) <= LONGEST_NAME:
            raise Invalid(
                FieldError("name", "name_length", "Give the key a name of 1 to 200 characters.")
            )
        if expires_at is not None and expires_at <= self.access.clock.now():
            raise Invalid(
                FieldError("expiresAt", "expiry_in_the_past", "Choose a time in the future.")
            )
        return await self.access.create_key(
            transaction, caller, caller.account, name=name, scopes=chosen, expires_at=expires_at
        )

    async def revoke(self, transaction: Transaction, caller: Caller, key_id: UUID) -> ApiKey:
        caller.require(Scope.MEMBERS_MANAGE)
        key = await transaction.keys.get(key_id)
        if key is None or key.account_id != caller.account:
            raise NotFound
        return await self.access.revoke_key(transaction, caller, key_id)
