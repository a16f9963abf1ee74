"""`cuepost setup`, `migrate` and `erase-account`: the store from its first day to an erasure."""

import sys
from uuid import UUID

import click

from cuepost.domain.access import Account
from cuepost.domain.errors import NotFound
from cuepost.interfaces.cli.accounts import no_account
from cuepost.interfaces.cli.first_account import make_first_account
from cuepost.interfaces.cli.output import facts, json_option, tell
from cuepost.interfaces.cli.runtime import CannotRun, Opened, Runtime, use


@click.command()
@json_option
def setup(as_json: bool) -> None:
    """Make the schema, a first account and its keys.

    The keys are printed once. On a store that has an account already nothing is changed, and
    that is said. With --json the object has accountId, apiKey, serviceKey and signInUrl; the last
    signs in to the settings pages once, within a day.
    """
    first = use(make_first_account, migrating=True)
    if first.is_new:
        words = f"Set up. This is shown once; keep the keys.\n\n{facts(first.known())}"
    else:
        words = f"Already set up; the first account is {first.account_id}."
    tell(as_json, first.as_json(), words)


@click.command()
@click.option(
    "--with-downtime",
    is_flag=True,
    help="All processes are stopped: also do what those of an older version could not bear.",
)
@json_option
@click.pass_obj
def migrate(runtime: Runtime, with_downtime: bool, as_json: bool) -> None:
    """Bring the store's schema to this version.

    The embedded store does that by itself at every start; PostgreSQL waits for this command.
    Processes of the version before go on meanwhile and afterwards; where they could not, the
    command changes nothing and says so.
    """
    runtime.migrate(with_downtime=with_downtime)
    tell(as_json, {"upToDate": True}, "The schema is up to date.")


@click.command("erase-account")
@click.argument("account_id", type=click.UUID)
@click.option("--yes", is_flag=True, help="Do not ask to type the account's id.")
@json_option
def erase_account(account_id: UUID, yes: bool, as_json: bool) -> None:
    """Erase an account and everything of it, for good.

    Projects with the files of their last exports, endpoints, secrets, history, keys and the audit
    trail go. It can be interrupted and started again. Files of exports that were replaced by later
    ones are not known here any more; whoever put them there takes them away.
    """
    account = use(lambda opened: _find(opened, account_id), missing=no_account(account_id))
    if not yes:
        _confirm(account)
    use(lambda opened: _erase(opened, account_id), missing=no_account(account_id))
    content = {"accountId": str(account_id), "erased": True}
    tell(as_json, content, f"Account {account_id} is erased.")


async def _find(opened: Opened, account_id: UUID) -> Account:
    account = await opened.service.perform.read(
        lambda transaction: transaction.accounts.get(account_id)
    )
    if account is None:
        raise NotFound
    return account


def _confirm(account: Account) -> None:
    click.echo(f"Everything of the account {account.name!r} will be gone for good.", err=True)
    typed = click.prompt("Type the account's id to go on", err=True, prompt_suffix=": ")
    if typed.strip() != str(account.id):
        raise CannotRun("That is not the account's id; nothing was erased.")


async def _erase(opened: Opened, account_id: UUID) -> None:
    steps, gone = 0, False
    while not gone:
        try:
            gone = await opened.service.maintenance.erasing.step(account_id)
        except NotFound:
            # After a first step it was somebody else who has erased the rest meanwhile.
            gone = steps > 0
            if not gone:
                raise
        steps += 1
        _show_progress(steps, gone)


def _show_progress(steps: int, is_done: bool) -> None:
    """A line that counts on a terminal; nothing elsewhere."""
    if sys.stderr.isatty():
        click.echo(f"\rErasing … step {steps}", nl=is_done, err=True)
