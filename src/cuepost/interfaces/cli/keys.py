"""`cuepost keys`: API keys of accounts, service keys and operator keys."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import click

from cuepost.application.access import NewKey
from cuepost.domain.access import (
    ACCOUNT_SCOPES,
    OPERATOR_SCOPES,
    SERVICE_SCOPES,
    USUAL_SCOPES,
    ApiKey,
    KeyKind,
    Scope,
    kind_of,
)
from cuepost.interfaces.cli.accounts import no_account
from cuepost.interfaces.cli.groups import OrderedGroup
from cuepost.interfaces.cli.output import json_option, key_json, print_result, table, time_text
from cuepost.interfaces.cli.paging import every
from cuepost.interfaces.cli.params import Instant, KeyId, Name
from cuepost.interfaces.cli.runtime import CommandContext, operator, use

# Keys of no account are listed first.
NO_ACCOUNT = UUID(int=0)


@click.group(cls=OrderedGroup)
def keys() -> None:
    """Create, list and revoke API keys.

    An account key acts for one account. A service key reports milestones for all of them, and an
    operator key manages the accounts themselves.

    \b
    Examples:
      cuepost keys create --account 01890a5d-ac96-774b-bcce-b302099a8057
      cuepost keys create --service --name "export pipeline"
      cuepost keys create --operator --name "our product"
      cuepost keys revoke 01890a5e-0b3c-7cc2-a1ff-2f6ad9a0d0f3
    """


@keys.command("create")
@click.option("--account", type=click.UUID, help="The account that the key belongs to.")
@click.option("--service", is_flag=True, help="Create a service key, for the pipeline.")
@click.option(
    "--operator", "for_operator", is_flag=True, help="Create an operator key, for your product."
)
@click.option(
    "--name", type=Name(), default="API key", show_default=True, help="A name for the key."
)
@click.option(
    "--scope",
    "scopes",
    type=click.Choice([scope.value for scope in Scope]),
    multiple=True,
    help="A scope of the key; can be repeated.  [default: all that fit but members:…]",
)
@click.option(
    "--expires-at", type=Instant(), help="When the key expires, such as 2027-01-31T00:00:00Z."
)
@json_option
def create(
    *,
    account: UUID | None,
    service: bool,
    for_operator: bool,
    name: str,
    scopes: Sequence[str],
    expires_at: datetime | None,
    as_json: bool,
) -> None:
    """Create a key and print it.

    The key is shown only once: the store keeps a digest of it, not the key itself.
    """
    if [account is not None, service, for_operator].count(True) != 1:
        raise click.UsageError("Give one of --account ID, --service and --operator.")
    chosen = _chosen(scopes, service=service, for_operator=for_operator)

    async def work(context: CommandContext) -> NewKey:
        access = context.service.access
        if expires_at is not None and expires_at <= access.clock.now():
            raise click.UsageError("--expires-at is in the past.")
        return await context.service.perform.change(
            lambda transaction: access.create_key(
                transaction, operator(), account, name=name, scopes=chosen, expires_at=expires_at
            )
        )

    made = use(work, missing=no_account(account) if account else "")
    words = f"Created key {made.key.id}. It is shown only once:\n\n  {made.token}\n"
    print_result(as_json, key_json(made.key) | {"token": made.token}, words)


def _chosen(scopes: Sequence[str], *, service: bool, for_operator: bool) -> frozenset[Scope]:
    possible, usual = ACCOUNT_SCOPES, USUAL_SCOPES
    if service or for_operator:
        possible = usual = SERVICE_SCOPES if service else OPERATOR_SCOPES
    chosen = frozenset(map(Scope, scopes)) or usual
    if not chosen <= possible:
        raise click.UsageError(f"Choose from {', '.join(sorted(possible))}.")
    return chosen


@keys.command("list")
@click.option("--account", type=click.UUID, help="Only the keys of this account.")
@click.option("--service", is_flag=True, help="Only the service keys.")
@click.option("--operator", "for_operator", is_flag=True, help="Only the operator keys.")
@json_option
def list_some(account: UUID | None, service: bool, for_operator: bool, as_json: bool) -> None:
    """List all keys, the keys of one account, the service keys or the operator keys."""
    if [account is not None, service, for_operator].count(True) > 1:
        raise click.UsageError("Give only one of --account ID, --service and --operator.")
    kind = KeyKind.SERVICE if service else KeyKind.OPERATOR if for_operator else None

    async def work(context: CommandContext) -> list[ApiKey]:
        perform = context.service.perform
        if account or kind:
            found = await perform.read(lambda transaction: transaction.keys.all(account))
            return [key for key in found if kind in (None, kind_of(key.scopes))]
        found = await every(
            lambda page: perform.read(lambda transaction: transaction.keys.page_of_all(page))
        )
        return sorted(found, key=lambda key: (key.account_id or NO_ACCOUNT, key.id))

    found = use(work)
    headings = ("ID", "ACCOUNT", "STATE", "LAST USED", "NAME", "SCOPES")
    words = table(headings, [_row(key) for key in found])
    print_result(
        as_json,
        {"data": [key_json(key) for key in found]},
        words if found else "There are no such keys; 'cuepost keys create' creates one.",
    )


@keys.command("revoke")
@click.argument("key_id", type=KeyId())
@json_option
def revoke(key_id: UUID, as_json: bool) -> None:
    """Revoke a key; every process refuses it within a second.

    KEY_ID is the id of the key, or the key itself.
    """

    async def work(context: CommandContext) -> ApiKey:
        return await context.service.perform.change(
            lambda transaction: context.service.access.revoke_key(transaction, operator(), key_id)
        )

    key = use(work, missing=f"There is no key {key_id}; 'cuepost keys list' lists all keys.")
    print_result(as_json, key_json(key), f"Key {key.id} is revoked.")


def _row(key: ApiKey) -> tuple[str, ...]:
    owner = str(key.account_id) if key.account_id else f"({kind_of(key.scopes)})"
    state = "revoked" if key.revoked_at else "active"
    if key.expires_at and not key.revoked_at:
        state = f"until {time_text(key.expires_at)}"
    last_used = time_text(key.last_used_at, "never")
    return str(key.id), owner, state, last_used, key.name, " ".join(sorted(key.scopes))
