"""The management of accounts and API keys."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from cuepost.application.audit_trail import AuditTrail
from cuepost.application.perform import OPERATOR, require_live
from cuepost.domain.access import (
    ACCOUNT_SCOPES,
    OPERATOR_SCOPES,
    SERVICE_SCOPES,
    TOKEN_SECRET_BYTES,
    Account,
    ApiKey,
    Caller,
    Scope,
    compose_token,
    digest,
)
from cuepost.domain.audit import Action
from cuepost.domain.delivery import CancelReason
from cuepost.domain.errors import FieldError, Invalid, NotFound, WebhooksNotEnabled
from cuepost.ports.store import Transaction
from cuepost.ports.system import Clock, Entropy, IdSource


@dataclass(frozen=True, slots=True)
class NewKey:
    key: ApiKey
    token: str

    def __repr__(self) -> str:
        return f"NewKey({self.key.id})"


@dataclass(frozen=True, slots=True)
class ManageAccess:
    """What an operator does with accounts and keys."""

    clock: Clock
    ids: IdSource
    entropy: Entropy
    audit: AuditTrail
    cell: str = ""

    async def create_account(
        self,
        transaction: Transaction,
        caller: Caller,
        name: str,
        webhooks_enabled: bool,
        external_id: str | None = None,
    ) -> Account:
        now = self.clock.now()
        account = Account(self.ids(now), name, webhooks_enabled, now, external_id=external_id)
        await transaction.accounts.add(account)
        await self.audit.note(
            transaction, caller, Action.ACCOUNT_CREATED, account.id, account.id, name=name
        )
        return account

    async def set_webhooks(
        self, transaction: Transaction, caller: Caller, account_id: UUID, enabled: bool
    ) -> Account:
        """Closing access cancels pending deliveries and ends the sessions of a host product."""
        account = await transaction.accounts.lock(account_id)
        if account is None:
            raise NotFound
        account.require_live()
        await transaction.accounts.set_access(account_id, enabled)
        action = Action.ACCESS_OPENED if enabled else Action.ACCESS_CLOSED
        if not enabled:
            await transaction.portal_links.end_all(account_id, None)
            await transaction.deliveries.stop_endpoint(
                account_id, None, CancelReason.ACCESS_CLOSED, self.clock.now()
            )
        await self.audit.note(transaction, caller, action, account_id, account_id)
        return await self._account(transaction, account_id)

    async def create_key(
        self,
        transaction: Transaction,
        caller: Caller,
        account_id: UUID | None,
        *,
        name: str,
        scopes: Iterable[Scope],
        expires_at: datetime | None = None,
    ) -> NewKey:
        """Create a key of an account; without one, a service or operator key, by its scopes."""
        now = self.clock.now()
        key_id = self.ids(now)
        token = compose_token(key_id, self.entropy(TOKEN_SECRET_BYTES), self.cell)
        chosen = _allowed(frozenset(scopes), is_of_account=account_id is not None)
        key = ApiKey(key_id, account_id, name, digest(token), chosen, now, expires_at)
        if account_id is not None:
            await require_live(transaction, account_id)
            (await self._account(transaction, account_id)).require_live()
        await self.audit.note(
            transaction, caller, Action.KEY_CREATED, account_id or OPERATOR, key_id, name=name
        )
        await transaction.keys.add(key)
        return NewKey(key, token)

    async def revoke_key(self, transaction: Transaction, caller: Caller, key_id: UUID) -> ApiKey:
        key = await transaction.keys.get(key_id)
        if key is None:
            raise NotFound
        if key.account_id is not None:
            await require_live(transaction, key.account_id)
        await transaction.keys.revoke(key_id, self.clock.now())
        await self.audit.note(
            transaction,
            caller,
            Action.KEY_REVOKED,
            key.account_id or OPERATOR,
            key_id,
            name=key.name,
        )
        revoked = await transaction.keys.get(key_id)
        assert revoked is not None
        return revoked

    async def _account(self, transaction: Transaction, account_id: UUID) -> Account:
        account = await transaction.accounts.get(account_id)
        if account is None:
            raise NotFound
        return account


async def require_open(transaction: Transaction, account_id: UUID) -> None:
    """Check access in this transaction, because a caller is cached for a second.

    The access cannot change until the transaction ends.
    """
    account = await transaction.accounts.hold(account_id)
    if account is not None:
        account.state.require_live()
    if account is None or not account.webhooks_enabled:
        raise WebhooksNotEnabled


def _allowed(scopes: frozenset[Scope], *, is_of_account: bool) -> frozenset[Scope]:
    if is_of_account:
        possible = ACCOUNT_SCOPES
    else:
        possible = OPERATOR_SCOPES if scopes & OPERATOR_SCOPES else SERVICE_SCOPES
    if not scopes or not scopes <= possible:
        raise Invalid(
            FieldError(
                "scopes", "scope_not_possible", f"Choose from {', '.join(sorted(possible))}."
            )
        )
    return scopes
