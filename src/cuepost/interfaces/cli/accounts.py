"""`cuepost accounts`: who may use the service, and whether webhooks are open to them."""

from uuid import UUID

import click

from cuepost.application.sign_in import NewLink
from cuepost.domain.access import Account
from cuepost.domain.instants import to_text
from cuepost.interfaces.cli.groups import InOrder
from cuepost.interfaces.cli.moving import COMMANDS as MOVING
from cuepost.interfaces.cli.output import (
    access_word,
    account_json,
    json_option,
    moment,
    table,
    tell,
)
from cuepost.interfaces.cli.params import Name
from cuepost.interfaces.cli.runtime import Opened, operator, use


def no_account(account_id: UUID) -> str:
    return f"There is no account {account_id}; 'cuepost accounts list' shows them all."


@click.group(cls=InOrder)
def accounts() -> None:
    """Create accounts, list them, open webhooks to them, move them to another database.

    \b
    Examples:
      cuepost accounts create --name "Harbour Films"
      cuepost accounts list
      cuepost accounts open-access 01890a5d-ac96-774b-bcce-b302099a8057
    """


@accounts.command("create")
@click.option(
    "--name", type=Name(), default="Account", show_default=True, help="What people call it."
)
@json_option
def create(name: str, as_json: bool) -> None:
    """Create an account.

    Whether it may use webhooks at once is set by CUEPOST_WEBHOOKS_ACCESS.
    """

    async def work(opened: Opened) -> Account:
        return await opened.service.perform.change(
            lambda transaction: opened.service.access.create_account(
                transaction, operator(), name, opened.settings.webhooks_access
            )
        )

    account = use(work)
    tell(
        as_json,
        account_json(account),
        f"Created account {account.id}; webhooks are {access_word(account)} to it.\n"
        f"Its first key: cuepost keys create --account {account.id}",
    )


@accounts.command("list")
@json_option
def list_all(as_json: bool) -> None:
    """List all accounts."""

    async def work(opened: Opened) -> list[Account]:
        return await opened.service.perform.read(lambda transaction: transaction.accounts.all())

    found = use(work)
    rows = [
        (
            str(account.id),
            access_word(account),
            account.state,
            moment(account.created_at),
            account.name,
        )
        for account in found
    ]
    words = table(("ID", "WEBHOOKS", "STATE", "CREATED", "NAME"), rows)
    tell(
        as_json,
        {"data": [account_json(account) for account in found]},
        words if found else "There are no accounts yet; 'cuepost setup' makes the first.",
    )


@accounts.command("open-access")
@click.argument("account_id", type=click.UUID)
@json_option
def open_access(account_id: UUID, as_json: bool) -> None:
    """Let an account use webhooks."""
    _set_access(account_id, True, as_json)


@accounts.command("close-access")
@click.argument("account_id", type=click.UUID)
@json_option
def close_access(account_id: UUID, as_json: bool) -> None:
    """Close webhooks to an account; deliveries that wait are cancelled."""
    _set_access(account_id, False, as_json)


@accounts.command("sign-in-link")
@click.argument("account_id", type=click.UUID)
@json_option
def sign_in_link(account_id: UUID, as_json: bool) -> None:
    """Make a link that signs in to an account's pages.

    It works once, within a day; also for somebody who has forgotten the password.
    """

    async def work(opened: Opened) -> NewLink:
        return await opened.service.perform.change(
            lambda transaction: opened.service.sign_in.make_link(
                transaction, operator(), account_id
            )
        )

    link = use(work, missing=no_account(account_id))
    content = {"signInUrl": link.url, "expiresAt": to_text(link.expires_at)}
    tell(as_json, content, f"{link.url}\nIt works once, until {to_text(link.expires_at)}.")


def _set_access(account_id: UUID, enabled: bool, as_json: bool) -> None:
    async def work(opened: Opened) -> Account:
        return await opened.service.perform.change(
            lambda transaction: opened.service.access.set_webhooks(
                transaction, operator(), account_id, enabled
            )
        )

    account = use(work, missing=no_account(account_id))
    words = f"Webhooks are {access_word(account)} to account {account.id}."
    tell(as_json, account_json(account), words)


for _command in MOVING:
    accounts.add_command(_command)
