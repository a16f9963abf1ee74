"""`cuepost audit`: the audit trail of the operators, or of one account."""

from uuid import UUID

import click
import msgspec

from cuepost.application.perform import OPERATOR
from cuepost.domain.audit import AuditEntry
from cuepost.interfaces.cli.output import json_option, print_result, table, time_text
from cuepost.interfaces.cli.runtime import CommandContext, use
from cuepost.interfaces.wire_models.audit import AuditEntry as ShownEntry
from cuepost.ports.records import Page

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
@json_option
def audit(account: UUID | None, limit: int, as_json: bool) -> None:
    """Show the audit trail, newest first.

    Without --account it shows the operators' own trail: who created and revoked service keys.
    Entries are kept for 400 days.
    """

    async def work(context: CommandContext) -> list[AuditEntry]:
        return await context.service.perform.read(
            lambda transaction: transaction.audit.page(account or OPERATOR, Page(limit=limit))
        )

    found = use(work)
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
