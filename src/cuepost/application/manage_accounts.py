"""Accounts as an operator manages them, from the command line or from a product by a key."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from cuepost.application.access import ManageAccess, NewKey
from cuepost.application.perform import OPERATOR
from cuepost.domain.access import Account, AccountState, ApiKey, Caller, Scope
from cuepost.domain.account_reference import AccountReference, checked_external_id
from cuepost.domain.audit import Action
from cuepost.domain.delivery import CancelReason
from cuepost.domain.errors import ExternalIdTaken, FieldError, Invalid, NotFound
from cuepost.ports.records import AccountSearch, Page
from cuepost.ports.store import Transaction


@dataclass(frozen=True, slots=True)
class AccountChange:
    """What is None stays as it is; `sets_external_id` tells that from an id to be removed."""

    name: str | None = None
    sets_external_id: bool = False
    external_id: str | None = None


@dataclass(frozen=True, slots=True)
class ManageAccounts:
    """`opens_access`: webhooks are open to a new account unless the operator decides otherwise."""

    access: ManageAccess
    opens_access: bool

    async def create(
        self,
        transaction: Transaction,
        caller: Caller,
        *,
        name: str,
        external_id: str | None = None,
        webhooks_enabled: bool | None = None,
    ) -> Account:
        caller.require(Scope.ACCOUNTS_MANAGE)
        enabled = self.opens_access if webhooks_enabled is None else webhooks_enabled
        if external_id is not None:
            await _require_free(transaction, external_id)
        return await self.access.create_account(transaction, caller, name, enabled, external_id)

    async def page(
        self, transaction: Transaction, caller: Caller, wanted: Page | AccountSearch
    ) -> list[Account]:
        """All accounts, newest first, or a search."""
        caller.require(Scope.ACCOUNTS_READ)
        if isinstance(wanted, Page):
            return await transaction.accounts.page(wanted)
        return await transaction.accounts.search(wanted)

    async def get(
        self, transaction: Transaction, caller: Caller, reference: AccountReference
    ) -> Account:
        caller.require(Scope.ACCOUNTS_READ)
        return await found_account(transaction, reference)

    async def change(
        self,
        transaction: Transaction,
        caller: Caller,
        reference: AccountReference,
        change: AccountChange,
    ) -> Account:
        caller.require(Scope.ACCOUNTS_MANAGE)
        account = await locked_account(transaction, reference)
        account.require_live()
        changed = replace(account, name=change.name or account.name)
        if change.sets_external_id:
            changed = replace(changed, external_id=change.external_id)
        if changed == account:
            return account
        if changed.external_id not in (None, account.external_id):
            await _require_free(transaction, str(changed.external_id))
        await transaction.accounts.save(changed)
        await self._note(transaction, caller, Action.ACCOUNT_CHANGED, account.id, changed)
        return changed

    async def set_webhooks(
        self,
        transaction: Transaction,
        caller: Caller,
        reference: AccountReference,
        enabled: bool,
    ) -> Account:
        """Closing access stops what is pending."""
        caller.require(Scope.ACCOUNTS_MANAGE)
        account_id = await _id(transaction, reference)
        return await self.access.set_webhooks(transaction, caller, account_id, enabled)

    async def erase(
        self,
        transaction: Transaction,
        caller: Caller,
        reference: AccountReference,
        *,
        even_moved: bool = False,
    ) -> Account:
        """From here on the account cannot be used; a maintenance job removes everything of it.

        With `even_moved` also what is left of an account that has moved to another database.
        """
        caller.require(Scope.ACCOUNTS_MANAGE)
        account = await locked_account(transaction, reference)
        if not (even_moved and account.state is AccountState.MOVED):
            account.state.require_live()
        if account.erasing_since is not None:
            return account
        now = self.access.clock.now()
        await transaction.accounts.start_erasing(account.id, now)
        await transaction.accounts.set_access(account.id, False)
        await transaction.keys.revoke_all(account.id, now)
        await transaction.portal_links.end_all(account.id, None)
        await transaction.deliveries.stop_endpoint(
            account.id, None, CancelReason.ACCESS_CLOSED, now
        )
        # The account's own trail is erased with it.
        await self._note(transaction, caller, Action.ERASURE_STARTED, OPERATOR, account)
        return replace(account, webhooks_enabled=False, erasing_since=now)

    async def keys(
        self, transaction: Transaction, caller: Caller, reference: AccountReference, page: Page
    ) -> list[ApiKey]:
        """Newest first."""
        caller.require(Scope.ACCOUNTS_READ)
        return await transaction.keys.page(await _id(transaction, reference), page)

    async def create_key(
        self,
        transaction: Transaction,
        caller: Caller,
        reference: AccountReference,
        *,
        name: str,
        scopes: Iterable[Scope],
        expires_at: datetime | None = None,
    ) -> NewKey:
        caller.require(Scope.ACCOUNTS_MANAGE)
        account_id = await _id(transaction, reference)
        if expires_at is not None and expires_at <= self.access.clock.now():
            raise Invalid(FieldError("expiresAt", "expiry_in_the_past", "Choose a later time."))
        return await self.access.create_key(
            transaction, caller, account_id, name=name, scopes=scopes, expires_at=expires_at
        )

    async def revoke_key(
        self,
        transaction: Transaction,
        caller: Caller,
        reference: AccountReference,
        key_id: UUID,
    ) -> ApiKey:
        caller.require(Scope.ACCOUNTS_MANAGE)
        account_id = await _id(transaction, reference)
        key = await transaction.keys.get(key_id)
        if key is None or key.account_id != account_id:
            raise NotFound
        return await self.access.revoke_key(transaction, caller, key_id)

    async def _note(
        self,
        transaction: Transaction,
        caller: Caller,
        action: Action,
        trail: UUID,
        account: Account,
    ) -> None:
        details = {"name": account.name}
        if account.external_id is not None:
            details["externalId"] = account.external_id
        await self.access.audit.note(transaction, caller, action, trail, account.id, **details)


async def found_account(transaction: Transaction, reference: AccountReference) -> Account:
    if isinstance(reference, UUID):
        account = await transaction.accounts.get(reference)
    else:
        account = await transaction.accounts.by_external_id(reference)
    if account is None:
        raise NotFound("There is no such account.")
    return account


async def _id(transaction: Transaction, reference: AccountReference) -> UUID:
    return (await found_account(transaction, reference)).id


async def locked_account(transaction: Transaction, reference: AccountReference) -> Account:
    account = await transaction.accounts.lock(await _id(transaction, reference))
    if account is None:
        raise NotFound("There is no such account.")
    return account


async def _require_free(transaction: Transaction, external_id: str) -> None:
    """The unique index refuses what two requests add at once; the second one then comes here."""
    holder = await transaction.accounts.by_external_id(checked_external_id(external_id))
    if holder is not None:
        raise ExternalIdTaken(
            f"The account {holder.id} has this external id.", accountId=str(holder.id)
        )
