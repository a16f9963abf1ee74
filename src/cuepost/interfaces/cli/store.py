"""`cuepost setup`, `cuepost migrate` and `cuepost erase-account`."""

import sys
from uuid import UUID

import click

from cuepost.domain.access import Account
from cuepost.domain.errors import NotFound
from cuepost.interfaces.cli.accounts import no_account
from cuepost.interfaces.cli.first_account import make_first_account
from cuepost.interfaces.cli.output import json_option, key_values, print_result
from cuepost.interfaces.cli.runtime import CannotRun, CommandContext, Runtime, operator, use


@click.command()
@json_option
def setup(as_json: bool) -> None:
    """Create the schema, a first account and its keys.

    The keys are shown only once. If the store already has an account, the command upgrades the
    schema, creates nothing and says so. With --json the object has accountId, apiKey, serviceKey
    and signInUrl, a link to the settings pages that works once and expires after a day.
    """
    first = use(make_first_account, migrating=True)
    if first.is_new:
        shown = key_values(first.known())
        words = f"Set up. Store these keys now; they are shown only once.\n\n{shown}"
    else:
        words = f"Already set up; the first account is {first.account_id}."
    print_result(as_json, first.as_json(), words)


@click.command()
@click.option(
    "--with-downtime",
    is_flag=True,
    help="Also run migrations that need all processes to be stopped.",
)
@json_option
@click.pass_obj
def migrate(runtime: Runtime, with_downtime: bool, as_json: bool) -> None:
    """Upgrade the schema of the store to this version.

    The embedded store is upgraded automatically at every start; PostgreSQL needs this command.
    Processes of the previous version can keep running during and after the upgrade. If they could
    not, the command changes nothing and says so.
    """
    runtime.migrate(with_downtime=with_downtime)
    print_result(as_json, {"upToDate": True}, "The schema is up to date.")


@click.command("erase-account")
@click.argument("account_id", type=click.UUID)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@json_option
def erase_account(account_id: UUID, yes: bool, as_json: bool) -> None:
    """Permanently erase an account and all of its data.

    This erases projects with the files of their last exports, endpoints, secrets, history, keys and
    the audit trail. The account cannot be used from the start of the command on. If the command is
    interrupted, a running service finishes the erasure, or the same command does.

    Files of older exports are not deleted, because the service no longer knows them; delete them
    from the media store yourself.
    """
    account = use(lambda context: _find(context, account_id), missing=no_account(account_id))
    if not yes:
        _confirm(account)
    use(lambda context: _erase(context, account_id), missing=no_account(account_id))
    content = {"accountId": str(account_id), "erased": True}
    print_result(as_json, content, f"Account {account_id} was erased.")


async def _find(context: CommandContext, account_id: UUID) -> Account:
    account = await context.service.perform.read(
        lambda transaction: transaction.accounts.get(account_id)
    )
    if account is None:
        raise NotFound
    return account


def _confirm(account: Account) -> None:
    click.echo(f"All data of the account {account.name!r} will be erased permanently.", err=True)
    typed = click.prompt("Type the id of the account to continue", err=True, prompt_suffix=": ")
    if typed.strip() != str(account.id):
        raise CannotRun("This is not the id of the account; nothing was erased.")


async def _erase(context: CommandContext, account_id: UUID) -> None:
    """As the operator's API does it, and then with the steps of the maintenance job at once."""
    service = context.service
    await service.perform.change(
        lambda transaction: service.accounts.erase(
            transaction, operator(), account_id, even_moved=True
        )
    )
    steps, gone = 0, False
    while not gone:
        try:
            gone = await service.maintenance.erasing.step(account_id)
        except NotFound:
            # The maintenance job of a running process has erased the rest.
            gone = True
        steps += 1
        _show_progress(steps, gone)


def _show_progress(steps: int, is_done: bool) -> None:
    """Show a progress line if standard error is a terminal."""
    if sys.stderr.isatty():
        click.echo(f"\rErasing … step {steps}", nl=is_done, err=True)
