"""`cuepost accounts`: create accounts, list them, and open or close webhook access."""

from uuid import UUID

import click

from cuepost.application.sign_in import NewLink
from cuepost.domain.access import Account
from cuepost.domain.instants import to_text
from cuepost.interfaces.cli.groups import OrderedGroup
from cuepost.interfaces.cli.moving import COMMANDS as MOVING
from cuepost.interfaces.cli.output import (
    access_state,
    account_json,
    json_option,
    print_result,
    table,
    time_text,
)
from cuepost.interfaces.cli.params import Name
from cuepost.interfaces.cli.runtime import CommandContext, operator, use


def no_account(account_id: UUID) -> str:
    return f"There is no account {account_id}; 'cuepost accounts list' lists all accounts."


@click.group(cls=OrderedGroup)
def accounts() -> None:
    """Create and list accounts, control their access to webhooks, and move them.

    \b
    Examples:
      cuepost accounts create --name "Harbour Films"
      cuepost accounts list
      cuepost accounts open-access 01890a5d-ac96-774b-bcce-b302099a8057
    """


@accounts.command("create")
@click.option(
    "--name", type=Name(), default="Account", show_default=True, help="A name for the account."
)
@json_option
def create(name: str, as_json: bool) -> None:
    """Create an account.

    CUEPOST_WEBHOOKS_ACCESS decides whether a new account may use webhooks.
    """

    async def work(context: CommandContext) -> Account:
        return await context.service.perform.change(
            lambda transaction: context.service.access.create_account(
                transaction, operator(), name, context.settings.webhooks_access
            )
        )

    account = use(work)
    print_result(
        as_json,
        account_json(account),
        f"Created account {account.id}; its access to webhooks is {access_state(account)}.\n"
        f"To create an API key: cuepost keys create --account {account.id}",
    )


@accounts.command("list")
@json_option
def list_all(as_json: bool) -> None:
    """List all accounts."""

    async def work(context: CommandContext) -> list[Account]:
        return await context.service.perform.read(lambda transaction: transaction.accounts.all())

    found = use(work)
    rows = [
        (
            str(account.id),
            access_state(account),
            account.state,
            time_text(account.created_at),
            account.name,
        )
        for account in found
    ]
    words = table(("ID", "WEBHOOKS", "STATE", "CREATED", "NAME"), rows)
    print_result(
        as_json,
        {"data": [account_json(account) for account in found]},
        words if found else "There are no accounts yet; 'cuepost setup' creates the first one.",
    )


@accounts.command("open-access")
@click.argument("account_id", type=click.UUID)
@json_option
def open_access(account_id: UUID, as_json: bool) -> None:
    """Allow an account to use webhooks."""
    _set_access(account_id, True, as_json)


@accounts.command("close-access")
@click.argument("account_id", type=click.UUID)
@json_option
def close_access(account_id: UUID, as_json: bool) -> None:
    """Stop an account from using webhooks; its pending deliveries are cancelled."""
    _set_access(account_id, False, as_json)


@accounts.command("sign-in-link")
@click.argument("account_id", type=click.UUID)
@json_option
def sign_in_link(account_id: UUID, as_json: bool) -> None:
    """Create a link that signs in to the settings pages of an account.

    The link works once and expires after a day. It also helps a user who has forgotten the
    password.
    """

    async def work(context: CommandContext) -> NewLink:
        return await context.service.perform.change(
            lambda transaction: context.service.sign_in.make_link(
                transaction, operator(), account_id
            )
        )

    link = use(work, missing=no_account(account_id))
    content = {"signInUrl": link.url, "expiresAt": to_text(link.expires_at)}
    print_result(
        as_json,
        content,
        f"{link.url}\nThe link works once and expires at {to_text(link.expires_at)}.",
    )


def _set_access(account_id: UUID, enabled: bool, as_json: bool) -> None:
    async def work(context: CommandContext) -> Account:
        return await context.service.perform.change(
            lambda transaction: context.service.access.set_webhooks(
                transaction, operator(), account_id, enabled
            )
        )

    account = use(work, missing=no_account(account_id))
    words = f"The access of account {account.id} to webhooks is {access_state(account)}."
    print_result(as_json, account_json(account), words)


for _command in MOVING:
    accounts.add_command(_command)
