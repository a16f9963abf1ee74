"""`cuepost audit`: who did what, of the operators' own matters or of one account."""

from uuid import UUID

import click
import msgspec

from cuepost.application.perform import OPERATOR
from cuepost.domain.audit import AuditEntry
from cuepost.interfaces.cli.output import json_option, moment, table, tell
from cuepost.interfaces.cli.runtime import Opened, use
from cuepost.interfaces.wire_models.audit import AuditEntry as ShownEntry
from cuepost.ports.records import Page

MOST = 1_000


@click.command()
@click.option("--account", type=click.UUID, help="Of this account; otherwise of service keys.")
@click.option(
    "--limit", type=click.IntRange(1, MOST), default=50, show_default=True, help="How many."
)
@json_option
def audit(account: UUID | None, limit: int, as_json: bool) -> None:
    """Show the audit trail, newest first.

    Without --account it is that of the operators: which service keys were created and revoked, by
    whom. Entries are kept for 400 days.
    """

    async def work(opened: Opened) -> list[AuditEntry]:
        return await opened.service.perform.read(
            lambda transaction: transaction.audit.page(account or OPERATOR, Page(limit=limit))
        )

    found = use(work)
    rows = [
        (moment(each.at), each.action, each.actor, each.address or "-", each.subject or "-")
        for each in found
    ]
    words = table(("AT", "ACTION", "BY", "FROM", "SUBJECT"), rows)
    content = {"data": [msgspec.to_builtins(ShownEntry.of(each)) for each in found]}
    tell(as_json, content, words if found else "There are no entries.")
