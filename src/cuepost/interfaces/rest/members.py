"""Calls about the members of an account and invitations."""

from cuepost.application.service import Service
from cuepost.domain.access import Scope
from cuepost.domain.errors import EmailTaken, InvitationLimitReached, LastOwner
from cuepost.domain.person import PasswordSignInOff
from cuepost.interfaces.rest.answers import Reply
from cuepost.interfaces.rest.operation import Call, NoInput, Operation
from cuepost.interfaces.rest.running import changing, reading
from cuepost.interfaces.wire_models.members import (
    ChangeMember,
    CreatedInvitation,
    Invitation,
    InvitationList,
    Invite,
    Member,
    MemberList,
)
from cuepost.interfaces.wire_models.paging import PageQuery, cut
from cuepost.interfaces.wire_models.shapes import given
from cuepost.ports.store import Transaction

MEMBERS = "/v1/members"
MEMBER = "/v1/members/{memberId}"
INVITATIONS = "/v1/invitations"
INVITATION = "/v1/invitations/{invitationId}"
_TAG = "Members"

_Plain = Call[NoInput, NoInput]


async def page(service: Service, transaction: Transaction, call: Call[NoInput, PageQuery]) -> Reply:
    found = await service.members.page(transaction, call.caller, call.query.page())
    return Reply(MemberList(*cut([Member.of(each) for each in found], call.query.limit)))


async def get(service: Service, transaction: Transaction, call: _Plain) -> Reply:
    found = await service.members.get(transaction, call.caller, call.ids["memberId"])
    return Reply(Member.of(found))


async def change(
    service: Service, transaction: Transaction, call: Call[ChangeMember, NoInput]
) -> Reply:
    changed = await service.members.change(
        transaction, call.caller, call.ids["memberId"], call.body.change()
    )
    return Reply(Member.of(changed))


async def remove(service: Service, transaction: Transaction, call: _Plain) -> Reply:
    await service.members.remove(transaction, call.caller, call.ids["memberId"])
    return Reply()


async def invitations(
    service: Service, transaction: Transaction, call: Call[NoInput, PageQuery]
) -> Reply:
    found = await service.members.invitations(transaction, call.caller, call.query.page())
    return Reply(InvitationList(*cut([Invitation.of(each) for each in found], call.query.limit)))


async def invite(service: Service, transaction: Transaction, call: Call[Invite, NoInput]) -> Reply:
    made = await service.members.invite(
        transaction, call.caller, call.body.role, given(call.body.email)
    )
    return Reply(CreatedInvitation.made(made), f"{INVITATIONS}/{made.invitation.id}")


async def resend(service: Service, transaction: Transaction, call: _Plain) -> Reply:
    made = await service.members.resend(transaction, call.caller, call.ids["invitationId"])
    return Reply(CreatedInvitation.made(made), f"{INVITATIONS}/{made.invitation.id}")


async def revoke(service: Service, transaction: Transaction, call: _Plain) -> Reply:
    await service.members.revoke(transaction, call.caller, call.ids["invitationId"])
    return Reply()


OPERATIONS = (
    Operation(
        method="GET",
        path=MEMBERS,
        name="listMembers",
        tag=_TAG,
        summary="List members",
        scope=Scope.MEMBERS_READ,
        query=PageQuery,
        answer=MemberList,
        run=reading(page),
    ),
    Operation(
        method="GET",
        path=MEMBER,
        name="getMember",
        tag=_TAG,
        summary="Get a member",
        scope=Scope.MEMBERS_READ,
        answer=Member,
        run=reading(get),
    ),
    Operation(
        method="PATCH",
        path=MEMBER,
        name="changeMember",
        tag=_TAG,
        summary="Change a member",
        description="Changes the role, or whether the member gets alerts by e-mail. A member who "
        "may do less than before is signed out.",
        scope=Scope.MEMBERS_MANAGE,
        body=ChangeMember,
        answer=Member,
        refusals=(LastOwner,),
        run=changing(change),
    ),
    Operation(
        method="DELETE",
        path=MEMBER,
        name="removeMember",
        tag=_TAG,
        summary="Remove a member",
        description="Ends the member's sessions and sign-in links.",
        scope=Scope.MEMBERS_MANAGE,
        status=204,
        answer=None,
        refusals=(LastOwner,),
        run=changing(remove),
    ),
    Operation(
        method="GET",
        path=INVITATIONS,
        name="listInvitations",
        tag=_TAG,
        summary="List open invitations",
        scope=Scope.MEMBERS_READ,
        query=PageQuery,
        answer=InvitationList,
        run=reading(invitations),
    ),
    Operation(
        method="POST",
        path=INVITATIONS,
        name="createInvitation",
        tag=_TAG,
        summary="Invite a person",
        description="The answer has the link, which works once within 7 days and is not shown "
        "again. With an e-mail address it is also sent there, if the service has a mail server "
        "(`emailQueued`). A new invitation to an address replaces the earlier one.",
        scope=Scope.MEMBERS_MANAGE,
        body=Invite,
        status=201,
        answer=CreatedInvitation,
        refusals=(EmailTaken, InvitationLimitReached, PasswordSignInOff),
        run=changing(invite),
    ),
    Operation(
        method="POST",
        path=f"{INVITATION}/resend",
        name="resendInvitation",
        tag=_TAG,
        summary="Send an invitation again",
        description="A new invitation with a new link and another 7 days takes the place of an "
        "open one, for the same address and role. The link of the old one stops working. With an "
        "e-mail address it is also sent there, as a first one is.",
        scope=Scope.MEMBERS_MANAGE,
        status=201,
        answer=CreatedInvitation,
        refusals=(EmailTaken, PasswordSignInOff),
        run=changing(resend),
    ),
    Operation(
        method="DELETE",
        path=INVITATION,
        name="revokeInvitation",
        tag=_TAG,
        summary="Revoke an invitation",
        scope=Scope.MEMBERS_MANAGE,
        status=204,
        answer=None,
        run=changing(revoke),
    ),
)
