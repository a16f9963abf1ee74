"""`cuepost members`: the members of an account, their roles, and invitations."""

from dataclasses import replace
from uuid import UUID

import click
import msgspec

from cuepost.application.manage_members import MemberChange, NewInvitation
from cuepost.domain.access import Caller, Role, Scope
from cuepost.domain.errors import (
    EmailTaken,
    ExternalIdTaken,
    InvitationLimitReached,
    LastOwner,
    NotFound,
)
from cuepost.domain.instants import to_text
from cuepost.domain.invitation import MOST_INVITATIONS, Invitation
from cuepost.domain.person import PasswordSignInOff, User
from cuepost.interfaces.cli.accounts import no_account
from cuepost.interfaces.cli.groups import OrderedGroup
from cuepost.interfaces.cli.output import json_option, print_result, table, time_text
from cuepost.interfaces.cli.params import ExternalId
from cuepost.interfaces.cli.runtime import CannotRun, CommandContext, T, Work, operator, use
from cuepost.interfaces.wire_models.members import CreatedInvitation, Member
from cuepost.interfaces.wire_models.members import Invitation as ShownInvitation
from cuepost.ports.records import Page
from cuepost.ports.store import Transaction

MOST = 1_000
account_option = click.option(
    "--account", type=click.UUID, required=True, help="The account of the members."
)
role_option = click.option(
    "--role",
    type=click.Choice([role.value for role in Role]),
    required=True,
    help="The role of the member.",
)


@click.group(cls=OrderedGroup)
def members() -> None:
    """Invite people to an account, add members, change their roles, remove them.

    \b
    Examples:
      cuepost members invite --account 01890a5d-ac96-774b-bcce-b302099a8057 --role developer
      cuepost members list --account 01890a5d-ac96-774b-bcce-b302099a8057
    """


@members.command("list")
@account_option
@json_option
def list_all(account: UUID, as_json: bool) -> None:
    """List members, newest first, and open invitations."""

    async def work(context: CommandContext) -> tuple[list[User], list[Invitation]]:
        async def look(transaction: Transaction) -> tuple[list[User], list[Invitation]]:
            if await transaction.accounts.get(account) is None:
                raise NotFound
            service, caller = context.service.members, _caller(account)
            return (
                await service.page(transaction, caller, Page(MOST)),
                await service.invitations(transaction, caller, Page(MOST_INVITATIONS)),
            )

        return await context.service.perform.read(look)

    found, invitations = _use(work, no_account(account))
    rows = [*map(_member_row, found), *map(_invitation_row, invitations)]
    content = {
        "members": [msgspec.to_builtins(Member.of(each)) for each in found],
        "invitations": [msgspec.to_builtins(ShownInvitation.of(each)) for each in invitations],
    }
    words = table(("ID", "ROLE", "SINCE", "EXTERNAL ID", "ALERTS", "E-MAIL"), rows)
    print_result(as_json, content, words if rows else "The account has no members yet.")


@members.command("invite")
@account_option
@role_option
@click.option("--email", help="The only address that the invitation is for.")
@json_option
def invite(account: UUID, role: str, email: str | None, as_json: bool) -> None:
    """Create a link by which a person becomes a member.

    The link works once and expires after 7 days. A new invitation to an e-mail address replaces
    the earlier one.
    """

    async def work(context: CommandContext) -> NewInvitation:
        return await context.service.perform.change(
            lambda transaction: context.service.members.invite(
                transaction, _caller(account), Role(role), email
            )
        )

    _print_invitation(as_json, _use(work, no_account(account)))


@members.command("add")
@account_option
@role_option
@click.option("--external-id", type=ExternalId(), help="What your own product calls the member.")
@click.option("--email", help="The address of the member, for alerts.")
@json_option
def add(
    account: UUID, *, role: str, external_id: str | None, email: str | None, as_json: bool
) -> None:
    """Add a member without a password, whom your own product signs in by portal links."""

    async def work(context: CommandContext) -> User:
        return await context.service.perform.change(
            lambda transaction: context.service.members.add(
                transaction, _caller(account), Role(role), email, external_id
            )
        )

    made = _use(work, no_account(account))
    content = msgspec.to_builtins(Member.of(made))
    print_result(as_json, content, f"Member {made.id} is {made.role} now.")


@members.command("update")
@click.argument("member_id", type=click.UUID)
@account_option
@click.option("--external-id", type=ExternalId(), help="A new external id.")
@click.option("--no-external-id", is_flag=True, help="Remove the external id.")
@json_option
def update(
    member_id: UUID,
    *,
    account: UUID,
    external_id: str | None,
    no_external_id: bool,
    as_json: bool,
) -> None:
    """Change the external id of a member."""
    if bool(external_id) is no_external_id:
        raise click.UsageError("Give --external-id or --no-external-id.")
    change = MemberChange(sets_external_id=True, external_id=external_id)

    async def work(context: CommandContext) -> User:
        return await context.service.perform.change(
            lambda transaction: context.service.members.change(
                transaction, _caller(account), member_id, change
            )
        )

    changed = _use(work, _no_member(member_id))
    content = msgspec.to_builtins(Member.of(changed))
    words = f"Member {changed.id} has the external id {changed.external_id or '-'} now."
    print_result(as_json, content, words)


@members.command("set-role")
@click.argument("member_id", type=click.UUID)
@account_option
@role_option
@json_option
def set_role(member_id: UUID, account: UUID, role: str, as_json: bool) -> None:
    """Change the role of a member; a lesser role signs the member out."""

    async def work(context: CommandContext) -> User:
        return await context.service.perform.change(
            lambda transaction: context.service.members.change_role(
                transaction, _caller(account), member_id, Role(role)
            )
        )

    changed = _use(work, _no_member(member_id))
    content = msgspec.to_builtins(Member.of(changed))
    print_result(as_json, content, f"Member {changed.id} is {changed.role} now.")


@members.command("set-alerts")
@click.argument("member_id", type=click.UUID)
@click.argument("wanted", type=click.Choice(["on", "off"]))
@account_option
@json_option
def set_alerts(member_id: UUID, wanted: str, account: UUID, as_json: bool) -> None:
    """Switch alerts by e-mail on or off for a member."""

    async def work(context: CommandContext) -> User:
        return await context.service.perform.change(
            lambda transaction: context.service.members.change(
                transaction,
                _caller(account),
                member_id,
                MemberChange(alerts_by_email=wanted == "on"),
            )
        )

    changed = _use(work, _no_member(member_id))
    content = msgspec.to_builtins(Member.of(changed))
    print_result(as_json, content, f"Alerts by e-mail for member {changed.id} are {wanted}.")


@members.command("remove")
@click.argument("member_id", type=click.UUID)
@account_option
@json_option
def remove(member_id: UUID, account: UUID, as_json: bool) -> None:
    """Remove a member and end the member's sessions."""

    async def work(context: CommandContext) -> None:
        await context.service.perform.change(
            lambda transaction: context.service.members.remove(
                transaction, _caller(account), member_id
            )
        )

    _use(work, _no_member(member_id))
    print_result(as_json, {"removed": str(member_id)}, f"Member {member_id} is removed.")


@members.command("resend-invitation")
@click.argument("invitation_id", type=click.UUID)
@account_option
@json_option
def resend_invitation(invitation_id: UUID, account: UUID, as_json: bool) -> None:
    """Send an invitation again: a new link takes the place of the old one."""

    async def work(context: CommandContext) -> NewInvitation:
        return await context.service.perform.change(
            lambda transaction: context.service.members.resend(
                transaction, _caller(account), invitation_id
            )
        )

    _print_invitation(as_json, _use(work, _no_invitation(invitation_id)))


@members.command("revoke-invitation")
@click.argument("invitation_id", type=click.UUID)
@account_option
@json_option
def revoke_invitation(invitation_id: UUID, account: UUID, as_json: bool) -> None:
    """Revoke an invitation; its link stops working."""

    async def work(context: CommandContext) -> None:
        await context.service.perform.change(
            lambda transaction: context.service.members.revoke(
                transaction, _caller(account), invitation_id
            )
        )

    _use(work, _no_invitation(invitation_id))
    content = {"revoked": str(invitation_id)}
    print_result(as_json, content, f"Invitation {invitation_id} is revoked.")


def _print_invitation(as_json: bool, made: NewInvitation) -> None:
    content = msgspec.to_builtins(CreatedInvitation.made(made))
    expires_at = to_text(made.invitation.expires_at)
    said = f"{made.url}\nThe link works once and expires at {expires_at}."
    if made.invitation.email_queued:
        said += f"\nThe service sends it to {made.invitation.email}."
    print_result(as_json, content, said)


def _member_row(user: User) -> tuple[str, ...]:
    alerts, since = "on" if user.wants_alerts else "off", time_text(user.created_at)
    other = (user.external_id or "-", alerts, user.email or "-")
    return (str(user.id), user.role.value, since, *other)


def _invitation_row(each: Invitation) -> tuple[str, ...]:
    since = time_text(each.created_at)
    return (str(each.id), f"{each.role} (invited)", since, "-", "-", each.email or "-")


def _caller(account_id: UUID) -> Caller:
    """An operator, with what an owner of the account may do with members."""
    return replace(operator(), account_id=account_id, scopes=frozenset({Scope.MEMBERS_MANAGE}))


def _use(work: Work[T], missing: str) -> T:
    try:
        return use(work, missing=missing)
    except (
        LastOwner,
        EmailTaken,
        ExternalIdTaken,
        InvitationLimitReached,
        PasswordSignInOff,
    ) as error:
        raise CannotRun(str(error)) from error


def _no_invitation(invitation_id: UUID) -> str:
    return f"There is no open invitation {invitation_id} in this account."


def _no_member(member_id: UUID) -> str:
    return f"There is no member {member_id} in this account; 'cuepost members list' lists all."
