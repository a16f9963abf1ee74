"""Calls of the operator about portal links and the sessions that they open."""

from cuepost.application.service import Service
from cuepost.domain.access import Scope
from cuepost.domain.errors import AccountErasing, LastOwner
from cuepost.interfaces.rest.accounts import ACCOUNT, ACCOUNTS, named_account
from cuepost.interfaces.rest.answers import Reply
from cuepost.interfaces.rest.operation import Call, NoInput, Operation
from cuepost.interfaces.rest.running import changing
from cuepost.interfaces.wire_models.portal import (
    CreatedPortalLink,
    CreatePortalLink,
    EndPortalSessions,
)
from cuepost.ports.store import Transaction

LINKS = f"{ACCOUNT}/portal-links"
_TAG = "Accounts"


async def create(
    service: Service, transaction: Transaction, call: Call[CreatePortalLink, NoInput]
) -> Reply:
    made = await service.portal.create(
        transaction, call.caller, named_account(call), call.body.wanted()
    )
    place = f"{ACCOUNTS}/{made.link.account_id}/portal-links/{made.link.id}"
    return Reply(CreatedPortalLink.of(made), place)


async def revoke(service: Service, transaction: Transaction, call: Call[NoInput, NoInput]) -> Reply:
    await service.portal.revoke(
        transaction, call.caller, named_account(call), call.ids["portalLinkId"]
    )
    return Reply()


async def end_sessions(
    service: Service, transaction: Transaction, call: Call[NoInput, EndPortalSessions]
) -> Reply:
    await service.portal.end_sessions(
        transaction, call.caller, named_account(call), call.query.reference()
    )
    return Reply()


OPERATIONS = (
    Operation(
        method="POST",
        path=LINKS,
        name="createPortalLink",
        tag=_TAG,
        summary="Create a link that signs a member in",
        description="Send your user to `url`, or open it in a frame. The link works once; "
        "opening it shows a page that signs the member in, so that a link preview does not use it "
        "up.",
        scope=Scope.PORTAL_CREATE,
        body=CreatePortalLink,
        status=201,
        answer=CreatedPortalLink,
        refusals=(LastOwner, AccountErasing),
        run=changing(create),
    ),
    Operation(
        method="DELETE",
        path=f"{LINKS}/{{portalLinkId}}",
        name="revokePortalLink",
        tag=_TAG,
        summary="Revoke a portal link and end its session",
        scope=Scope.PORTAL_CREATE,
        status=204,
        answer=None,
        refusals=(AccountErasing,),
        run=changing(revoke),
    ),
    Operation(
        method="DELETE",
        path=f"{ACCOUNT}/portal-sessions",
        name="endPortalSessions",
        tag=_TAG,
        summary="End the portal sessions of a member or of the account",
        description="Ends portal links that were not used yet as well.",
        scope=Scope.PORTAL_CREATE,
        query=EndPortalSessions,
        status=204,
        answer=None,
        refusals=(AccountErasing,),
        run=changing(end_sessions),
    ),
)
