"""Members of the account: roles, invitations, removal, and how an invited person joins."""

import hashlib
import json
from collections.abc import Awaitable, Callable
from typing import NoReturn

from starlette.responses import Response

from cuepost.application.manage_members import NewInvitation
from cuepost.application.perform import IdempotentCall
from cuepost.domain.access import Role, Scope
from cuepost.domain.errors import EmailTaken, FieldError, Invalid, NotFound, Refused
from cuepost.domain.invitation import Invitation
from cuepost.domain.person import User
from cuepost.interfaces.web.page_context import PageContext, PageRoute
from cuepost.interfaces.web.page_handler import failure
from cuepost.interfaces.web.sign_in import HOME, field_error, started_session
from cuepost.ports.records import Page
from cuepost.ports.store import Transaction

ALL = "/settings/members"
INVITATION = "/settings/invitations/{invitation_id}"
MOST_SHOWN = 200
MEANINGS = {
    Role.OWNER: "do everything, also manage members and API keys.",
    Role.DEVELOPER: "change endpoints, secrets and projects, send tests and retry.",
    Role.VIEWER: "read everything but secrets, API keys and the audit trail; change nothing.",
}


async def show_all(context: PageContext) -> Response:
    return await _list(context, ())


async def invite(context: PageContext) -> Response:
    role, email = _role(context), context.form.text("email").strip() or None
    try:
        return await _invited(
            context,
            f"invite {role} {email}",
            lambda transaction: context.service.members.invite(
                transaction, context.caller, role, email
            ),
        )
    except Invalid as invalid:
        return await _list(context, invalid.errors)
    except EmailTaken as refused:
        return await _list(context, (field_error("email", refused),))


async def resend(context: PageContext) -> Response:
    invitation_id = context.id("invitation_id")
    return await _invited(
        context,
        f"resend {invitation_id}",
        lambda transaction: context.service.members.resend(
            transaction, context.caller, invitation_id
        ),
    )


async def _invited(
    context: PageContext,
    request: str,
    make: Callable[[Transaction], Awaitable[NewInvitation]],
) -> Response:
    """The page with the link, which is the same if the form is sent twice."""

    async def act(transaction: Transaction) -> bytes:
        made = await make(transaction)
        invitation = made.invitation
        kept = {
            "url": made.url,
            "email": invitation.email,
            "role": invitation.role,
            "emailed": invitation.email_queued,
        }
        return json.dumps(kept).encode()

    once, what = context.form.text("once"), hashlib.sha256(request.encode())
    # One page has a form for each invitation, and all of them have the same `once`.
    call = IdempotentCall(f"pages:{once}:{what.hexdigest()}", what.digest()) if once else None
    answer = await context.service.perform.once(context.caller, call, act, _refuse)
    return context.page(
        "members/invited.html",
        section="members",
        made=json.loads(answer.content),
        is_repeated=context.path.endswith("/resend"),
    )


async def change_role(context: PageContext) -> Response:
    member_id, role = context.id("member_id"), _role(context)
    await context.do(
        lambda transaction: context.service.members.change_role(
            transaction, context.caller, member_id, role
        )
    )
    return context.go(ALL, "role-changed")


async def remove(context: PageContext) -> Response:
    member_id = context.id("member_id")
    await context.do(
        lambda transaction: context.service.members.remove(transaction, context.caller, member_id)
    )
    return context.go(ALL, "member-removed")


async def revoke(context: PageContext) -> Response:
    invitation_id = context.id("invitation_id")
    await context.do(
        lambda transaction: context.service.members.revoke(
            transaction, context.caller, invitation_id
        )
    )
    return context.go(ALL, "invitation-revoked")


async def show_join(context: PageContext) -> Response:
    return await _join_form(context, ())


async def join(context: PageContext) -> Response:
    token, form = context.request.path_params["token"], context.form
    try:
        session = await context.service.joining.accept(
            token, form.text("email"), form.text("password"), context.address
        )
    except Invalid as invalid:
        return await _join_form(context, invalid.errors)
    except EmailTaken as refused:
        return await _join_form(context, (field_error("email", refused),))
    return started_session(context, session, f"{HOME}?note=joined")


async def _join_form(context: PageContext, errors: tuple[FieldError, ...]) -> Response:
    token = context.request.path_params["token"]
    try:
        found = await context.see(
            lambda transaction: context.service.joining.look(transaction, token)
        )
    except NotFound as refused:
        sentence = f"{refused} An owner of the account can create another one."
        return failure(context, 404, sentence, "This invitation has ended")
    return context.page(
        "members/join.html",
        422 if errors else 200,
        link=token,
        invitation=found.invitation,
        account=found.account,
        meaning=MEANINGS[found.invitation.role],
        email=found.invitation.email or context.form.text("email"),
        errors=errors,
    )


async def _list(context: PageContext, errors: tuple[FieldError, ...]) -> Response:
    async def look(transaction: Transaction) -> tuple[list[User], list[Invitation]]:
        members, page = context.service.members, Page(MOST_SHOWN)
        return (
            await members.page(transaction, context.caller, page),
            await members.invitations(transaction, context.caller, page),
        )

    members, invitations = await context.see(look)
    return context.page(
        "members/list.html",
        422 if errors else 200,
        section="members",
        members=members[::-1],
        invitations=invitations,
        roles=MEANINGS,
        by_email=context.service.members.by_email,
        errors=errors,
        email=context.form.text("email"),
        role=context.form.text("role") or Role.DEVELOPER,
        may_manage=context.caller.may(Scope.MEMBERS_MANAGE),
        once=context.form.text("once") or context.once(),
    )


def _role(context: PageContext) -> Role:
    wanted = context.form.text("role")
    if wanted not in list(Role):
        raise Invalid(FieldError("role", "role_unknown", "Choose one of the roles."))
    return Role(wanted)


def _refuse(refused: Refused) -> NoReturn:
    raise refused


ROUTES = (
    PageRoute(ALL, get=show_all, post=invite, writes=Scope.MEMBERS_MANAGE),
    PageRoute(f"{ALL}/{{member_id}}/role", post=change_role, writes=Scope.MEMBERS_MANAGE),
    PageRoute(f"{ALL}/{{member_id}}/remove", post=remove, writes=Scope.MEMBERS_MANAGE),
    PageRoute(f"{INVITATION}/resend", post=resend, writes=Scope.MEMBERS_MANAGE),
    PageRoute(f"{INVITATION}/revoke", post=revoke, writes=Scope.MEMBERS_MANAGE),
    PageRoute("/join/{token}", get=show_join, post=join, is_open=True),
)
