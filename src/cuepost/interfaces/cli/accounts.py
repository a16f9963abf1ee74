"""`cuepost accounts`: create accounts, list them, and open or close webhook access."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from uuid import UUID

import click

from cuepost.application.manage_accounts import AccountChange
from cuepost.application.sign_in import NewLink
from cuepost.domain.access import Account
from cuepost.domain.account_reference import EXTERNAL, AccountReference, search_key
from cuepost.domain.instants import to_text
from cuepost.interfaces.cli.groups import OrderedGroup
from cuepost.interfaces.cli.moving import COMMANDS as MOVING
from cuepost.interfaces.cli.output import (
    access_state,
    account_json,
    json_option,
    key_values,
    print_result,
    table,
    time_text,
)
from cuepost.interfaces.cli.paging import AT_ONCE, every
from cuepost.interfaces.cli.params import ExternalId, Name, NamedAccount
from cuepost.interfaces.cli.runtime import CommandContext, operator, use
from cuepost.ports.records import AccountSearch, SearchedBy


def no_account(reference: AccountReference) -> str:
    named = reference if isinstance(reference, UUID) else f"{EXTERNAL}{reference}"
    return f"There is no account {named}; 'cuepost accounts list' lists all accounts."


@click.group(cls=OrderedGroup)
def accounts() -> None:
    """Create, find and change accounts, control their access to webhooks, and move them.

    ACCOUNT is the id of an account, or external: and its external id.

    \b
    Examples:
      cuepost accounts create --name "Harbour Films" --external-id cust_42
      cuepost accounts list
      cuepost accounts get external:cust_42
      cuepost accounts open-access 01890a5d-ac96-774b-bcce-b302099a8057
    """


@accounts.command("create")
@click.option(
    "--name", type=Name(), default="Account", show_default=True, help="A name for the account."
)
@click.option(
    "--external-id", type=ExternalId(), help="What your own product calls the account; unique."
)
@json_option
def create(name: str, external_id: str | None, as_json: bool) -> None:
    """Create an account.

    CUEPOST_WEBHOOKS_ACCESS decides whether a new account may use webhooks.
    """

    async def work(context: CommandContext) -> Account:
        return await context.service.perform.change(
            lambda transaction: context.service.accounts.create(
                transaction, operator(), name=name, external_id=external_id
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
@click.option("--name-prefix", type=Name(), help="Only names that begin with this, in any case.")
@click.option(
    "--external-id-prefix", type=ExternalId(), help="Only external ids that begin with this."
)
@json_option
def list_all(name_prefix: str | None, external_id_prefix: str | None, as_json: bool) -> None:
    """List all accounts, or those whose name or external id begins with a text."""
    if name_prefix and external_id_prefix:
        raise click.UsageError("Give --name-prefix or --external-id-prefix, not both.")

    async def work(context: CommandContext) -> list[Account]:
        if name_prefix:
            return await _search(context, SearchedBy.NAME, search_key(name_prefix))
        if external_id_prefix:
            return await _search(context, SearchedBy.EXTERNAL_ID, external_id_prefix)
        newest_first = await every(
            lambda page: context.service.perform.read(
                lambda transaction: transaction.accounts.page(page)
            )
        )
        return newest_first[::-1]

    found = use(work)
    _print_all(found, as_json)


async def _search(context: CommandContext, by: SearchedBy, prefix: str) -> list[Account]:
    found: list[Account] = []
    search: AccountSearch | None = AccountSearch(by, prefix, AT_ONCE)
    while search is not None:
        page = await context.service.perform.read(
            partial(context.service.accounts.page, caller=operator(), wanted=search)
        )
        found += page
        search = replace(search, after=search.place_of(page[-1])) if page else None
    return found


def _print_all(found: Sequence[Account], as_json: bool) -> None:
    rows = [
        (
            str(account.id),
            access_state(account),
            "erasing" if account.erasing_since else account.state,
            time_text(account.created_at),
            account.external_id or "-",
            account.name,
        )
        for account in found
    ]
    words = table(("ID", "WEBHOOKS", "STATE", "CREATED", "EXTERNAL ID", "NAME"), rows)
    print_result(
        as_json,
        {"data": [account_json(account) for account in found]},
        words if found else "There are no such accounts; 'cuepost accounts create' creates one.",
    )


@accounts.command("get")
@click.argument("account", type=NamedAccount())
@json_option
def get(account: AccountReference, as_json: bool) -> None:
    """Show an account."""

    async def work(context: CommandContext) -> Account:
        return await context.service.perform.read(
            lambda transaction: context.service.accounts.get(transaction, operator(), account)
        )

    _print_one(use(work, missing=no_account(account)), as_json)


@accounts.command("update")
@click.argument("account", type=NamedAccount())
@click.option("--name", type=Name(), help="A new name.")
@click.option("--external-id", type=ExternalId(), help="A new external id.")
@click.option("--no-external-id", is_flag=True, help="Remove the external id.")
@json_option
def update(
    account: AccountReference,
    *,
    name: str | None,
    external_id: str | None,
    no_external_id: bool,
    as_json: bool,
) -> None:
    """Change the name or the external id of an account."""
    if external_id and no_external_id:
        raise click.UsageError("Give --external-id or --no-external-id, not both.")
    change = AccountChange(name, bool(external_id) or no_external_id, external_id)

    async def work(context: CommandContext) -> Account:
        return await context.service.perform.change(
            lambda transaction: context.service.accounts.change(
                transaction, operator(), account, change
            )
        )

    _print_one(use(work, missing=no_account(account)), as_json)


def _print_one(account: Account, as_json: bool) -> None:
    content = account_json(account)
    shown = {name: str(value) for name, value in content.items() if value is not None}
    print_result(as_json, content, key_values(shown))


@accounts.command("open-access")
@click.argument("account", type=NamedAccount())
@json_option
def open_access(account: AccountReference, as_json: bool) -> None:
    """Allow an account to use webhooks."""
    _set_access(account, True, as_json)


@accounts.command("close-access")
@click.argument("account", type=NamedAccount())
@json_option
def close_access(account: AccountReference, as_json: bool) -> None:
    """Stop an account from using webhooks; its pending deliveries are cancelled."""
    _set_access(account, False, as_json)


@accounts.command("sign-in-link")
@click.argument("account_id", type=click.UUID)
@click.option("--member", type=click.UUID, help="The member to sign in.  [default: first owner]")
@json_option
def sign_in_link(account_id: UUID, member: UUID | None, as_json: bool) -> None:
    """Create a link that signs in to the settings pages of an account.

    The link works once and expires after a day. It also helps a user who has forgotten the
    password.
    """

    async def work(context: CommandContext) -> NewLink:
        return await context.service.perform.change(
            lambda transaction: context.service.sign_in.make_link(
                transaction, operator(), account_id, member
            )
        )

    unknown = f"Account {account_id} has no member {member}." if member else no_account(account_id)
    link = use(work, missing=unknown)
    content = {"signInUrl": link.url, "expiresAt": to_text(link.expires_at)}
    print_result(
        as_json,
        content,
        f"{link.url}\nThe link works once and expires at {to_text(link.expires_at)}.",
    )


def _set_access(reference: AccountReference, enabled: bool, as_json: bool) -> None:
    async def work(context: CommandContext) -> Account:
        return await context.service.perform.change(
            lambda transaction: context.service.accounts.set_webhooks(
                transaction, operator(), reference, enabled
            )
        )

    account = use(work, missing=no_account(reference))
    words = f"The access of account {account.id} to webhooks is {access_state(account)}."
    print_result(as_json, account_json(account), words)


for _command in MOVING:
    accounts.add_command(_command)
