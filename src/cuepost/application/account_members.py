"""Members of an account as a host product manages them, with an operator key."""

from dataclasses import dataclass, replace
from uuid import UUID

from cuepost.application.manage_accounts import found_account
from cuepost.application.manage_members import ManageMembers, MemberChange
from cuepost.domain.access import Account, Caller, Role, Scope
from cuepost.domain.account_reference import AccountReference
from cuepost.domain.errors import FieldError, Invalid, NotFound
from cuepost.domain.person import User
from cuepost.ports.records import Page
from cuepost.ports.store import Transaction

MemberReference = UUID | str
"""The id of a member, or its external id as text."""


@dataclass(frozen=True, slots=True)
class AccountMembers:
    """Acts as an owner of the account would, under the rules of the account."""

    members: ManageMembers

    async def page(
        self,
        transaction: Transaction,
        caller: Caller,
        reference: AccountReference,
        page: Page,
        *,
        external_id: str | None = None,
    ) -> list[User]:
        """Newest first; with an external id one, or none."""
        caller.require(Scope.ACCOUNTS_READ)
        account = await found_account(transaction, reference)
        if external_id is not None:
            user = await transaction.users.by_external_id(account.id, external_id)
            return [] if user is None else [user]
        return await self.members.page(transaction, as_owner(caller, account), page)

    async def add(
        self,
        transaction: Transaction,
        caller: Caller,
        reference: AccountReference,
        *,
        role: Role,
        email: str | None = None,
        external_id: str | None = None,
    ) -> User:
        caller.require(Scope.ACCOUNTS_MANAGE)
        account = await found_account(transaction, reference)
        return await self.members.add(
            transaction, as_owner(caller, account), role, email, external_id
        )

    async def change(
        self,
        transaction: Transaction,
        caller: Caller,
        reference: AccountReference,
        member_id: UUID,
        change: MemberChange,
    ) -> User:
        caller.require(Scope.ACCOUNTS_MANAGE)
        account = await found_account(transaction, reference)
        return await self.members.change(transaction, as_owner(caller, account), member_id, change)

    async def remove(
        self,
        transaction: Transaction,
        caller: Caller,
        reference: AccountReference,
        member_id: UUID,
    ) -> None:
        caller.require(Scope.ACCOUNTS_MANAGE)
        account = await found_account(transaction, reference)
        await self.members.remove(transaction, as_owner(caller, account), member_id)


def as_owner(caller: Caller, account: Account) -> Caller:
    """The audit trail still names the operator key."""
    return replace(caller, account_id=account.id, scopes=frozenset({Scope.MEMBERS_MANAGE}))


async def found_member(
    transaction: Transaction, account: Account, reference: MemberReference
) -> User | None:
    if isinstance(reference, UUID):
        user = await transaction.users.get(account.id, reference)
        if user is None:
            raise NotFound("There is no such member in this account.")
        return user
    return await transaction.users.by_external_id(account.id, reference)


def required_role(role: Role | None) -> Role:
    if role is None:
        raise Invalid(
            FieldError("role", "missing_field", "The member does not exist yet; give a role.")
        )
    return role
