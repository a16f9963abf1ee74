"""`cuepost audit`: the audit trail of the operators, or of one account."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import click
import msgspec

from cuepost.application.perform import OPERATOR
from cuepost.application.search_audit import Trail, search_audit, searches
from cuepost.domain.audit import GROUPS, Action, AuditEntry, actions_in
from cuepost.interfaces.cli.output import json_option, print_result, table, time_text
from cuepost.interfaces.cli.params import Instant
from cuepost.interfaces.cli.runtime import CommandContext, use
from cuepost.interfaces.wire_models.audit import AuditEntry as ShownEntry
from cuepost.ports.records import AuditFilter, Page

MOST = 1_000


@click.command()
@click.option("--account", type=click.UUID, help="Show the trail of this account.")
@click.option(
    "--limit",
    type=click.IntRange(1, MOST),
    default=50,
    show_default=True,
    help="How many entries to show.",
)
@click.option(
    "--action",
    type=click.Choice([*GROUPS, *(each.value for each in Action)]),
    metavar="NAME",
    help="Show this action, or all of a group such as webhook.",
)
@click.option("--actor", help="Show what this actor did: user, key, operator, or one of them.")
@click.option("--since", type=Instant(), help="Show what was done at this time or later.")
@click.option("--until", type=Instant(), help="Show what was done before this time.")
@json_option
def audit(
    account: UUID | None,
    *,
    limit: int,
    action: str | None,
    actor: str | None,
    since: datetime | None,
    until: datetime | None,
    as_json: bool,
) -> None:
    """Show the audit trail, newest first.

    Without --account it shows the operators' own trail: service and operator keys, sign-ins to the
    operator's pages, access that was opened or closed, erasures and moves. Entries are kept for
    400 days.
    """

    chosen = AuditFilter(actions_in(action) if action else None, actor, since, until)

    async def work(context: CommandContext) -> list[AuditEntry]:
        async def read(page: Page) -> Trail:
            return await context.service.perform.read(
                lambda transaction: search_audit(transaction, account or OPERATOR, chosen, page)
            )

        return [entry async for part in searches(read, limit) for entry in part.entries]

    _print(use(work), as_json)


def _print(found: Sequence[AuditEntry], as_json: bool) -> None:
    rows = [
        (
            time_text(each.at),
            each.action,
            each.actor_name or each.actor,
            each.address or "-",
            each.subject or "-",
        )
        for each in found
    ]
    words = table(("AT", "ACTION", "BY", "FROM", "SUBJECT"), rows)
    content = {"data": [msgspec.to_builtins(ShownEntry.of(each)) for each in found]}
    print_result(as_json, content, words if found else "There are no entries.")
