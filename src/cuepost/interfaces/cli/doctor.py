"""`cuepost doctor`: looks at everything that the service needs, and says how to fix it."""

import json
import sys
from collections import Counter

import click

from cuepost.interfaces.cli.output import json_option
from cuepost.interfaces.cli.runtime import Finding, Level, Runtime

MARKS = {Level.OK: ("✓", "green"), Level.WARNING: ("!", "yellow"), Level.FAILURE: ("✗", "red")}


@click.command()
@click.option("--offline", is_flag=True, help="Leave out what needs the network.")
@json_option
@click.pass_obj
def doctor(runtime: Runtime, offline: bool, as_json: bool) -> None:
    """Say what keeps the service from working here, and how to fix it.

    It looks at settings, packages, folder, disk, master key, limits, proxy variables, clock, the
    address of the service, store, schema, secrets, and at the names and connections of a few
    receivers. Nothing is changed. Run it as the user and with the settings of the service, which
    may run or not.

    \b
    Examples:
      cuepost doctor
      cuepost doctor --offline --json | jq '.findings[] | select(.level != "ok")'

    Exits with 0 when nothing failed (there may be warnings), with 1 when something did, and with 2
    when a setting cannot be used.
    """
    findings: list[Finding] = []
    for finding in runtime.examine(offline=offline):
        findings.append(finding)
        if not as_json:
            click.echo(_line(finding))
    levels = Counter(finding.level for finding in findings)
    healthy = not levels[Level.FAILURE]
    if as_json:
        content = {"healthy": healthy, "findings": [finding.as_json() for finding in findings]}
        click.echo(json.dumps(content, ensure_ascii=False))
    else:
        click.echo(f"\n{levels[Level.FAILURE]} failures, {levels[Level.WARNING]} warnings.")
    sys.exit(0 if healthy else 1)


def _line(finding: Finding) -> str:
    mark, colour = MARKS[finding.level]
    said = f"{click.style(mark, fg=colour)} {finding.check}: {finding.sentence}"
    return f"{said}\n    {finding.fix}" if finding.fix else said
