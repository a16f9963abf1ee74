"""Calls of the operator about the members of an account."""

from cuepost.application.service import Service
from cuepost.domain.access import Scope
from cuepost.domain.errors import AccountErasing, EmailTaken, ExternalIdTaken, LastOwner
from cuepost.interfaces.rest.accounts import ACCOUNT, ACCOUNTS, named_account
from cuepost.interfaces.rest.answers import Reply
from cuepost.interfaces.rest.operation import Call, NoInput, Operation
from cuepost.interfaces.rest.running import changing, reading
from cuepost.interfaces.wire_models.members import (
    AddMember,
    Member,
    MemberList,
    MemberQuery,
    UpdateMember,
)
from cuepost.interfaces.wire_models.paging import cut
from cuepost.interfaces.wire_models.shapes import given
from cuepost.ports.store import Transaction

MEMBERS = f"{ACCOUNT}/members"
MEMBER = f"{MEMBERS}/{{memberId}}"
_TAG = "Accounts"


async def page(
    service: Service, transaction: Transaction, call: Call[NoInput, MemberQuery]
) -> Reply:
    found = await service.account_members.page(
        transaction,
        call.caller,
        named_account(call),
        call.query.page(),
        external_id=given(call.query.external_id),
    )
    return Reply(MemberList(*cut([Member.of(each) for each in found], call.query.limit)))


async def add(service: Service, transaction: Transaction, call: Call[AddMember, NoInput]) -> Reply:
    made = await service.account_members.add(
        transaction,
        call.caller,
        named_account(call),
        role=call.body.role,
        email=given(call.body.email),
        external_id=given(call.body.external_id),
    )
    return Reply(Member.of(made), f"{ACCOUNTS}/{made.account_id}/members/{made.id}")


async def change(
    service: Service, transaction: Transaction, call: Call[UpdateMember, NoInput]
) -> Reply:
    changed = await service.account_members.change(
        transaction, call.caller, named_account(call), call.ids["memberId"], call.body.change()
    )
    return Reply(Member.of(changed))


async def remove(service: Service, transaction: Transaction, call: Call[NoInput, NoInput]) -> Reply:
    await service.account_members.remove(
        transaction, call.caller, named_account(call), call.ids["memberId"]
    )
    return Reply()


OPERATIONS = (
    Operation(
        method="GET",
        path=MEMBERS,
        name="listAccountMembers",
        tag=_TAG,
        summary="List the members of an account",
        description="With `externalId` the list has that member, or none.",
        scope=Scope.ACCOUNTS_READ,
        query=MemberQuery,
        answer=MemberList,
        run=reading(page),
    ),
    Operation(
        method="POST",
        path=MEMBERS,
        name="addAccountMember",
        tag=_TAG,
        summary="Add a member to an account",
        description="The member has no password; a portal link signs the member in. If a member "
        "of the account has this `externalId` already, the answer is 409 `external_id_taken`, and "
        "`memberId` says which one.",
        scope=Scope.ACCOUNTS_MANAGE,
        body=AddMember,
        status=201,
        answer=Member,
        refusals=(ExternalIdTaken, EmailTaken, AccountErasing),
        run=changing(add),
    ),
    Operation(
        method="PATCH",
        path=MEMBER,
        name="changeAccountMember",
        tag=_TAG,
        summary="Change the role or the external id of a member",
        description="A member who may do less than before is signed out.",
        scope=Scope.ACCOUNTS_MANAGE,
        body=UpdateMember,
        answer=Member,
        refusals=(ExternalIdTaken, LastOwner, AccountErasing),
        run=changing(change),
    ),
    Operation(
        method="DELETE",
        path=MEMBER,
        name="removeAccountMember",
        tag=_TAG,
        summary="Remove a member of an account",
        description="Ends the member's sessions, sign-in links and portal links.",
        scope=Scope.ACCOUNTS_MANAGE,
        status=204,
        answer=None,
        refusals=(LastOwner, AccountErasing),
        run=changing(remove),
    ),
)
