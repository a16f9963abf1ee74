"""`cuepost doctor`: checks everything that the service needs and suggests fixes."""

import json
import sys
from collections import Counter

import click

from cuepost.interfaces.cli.output import json_option
from cuepost.interfaces.cli.runtime import CheckResult, Level, Runtime

MARKS = {Level.OK: ("✓", "green"), Level.WARNING: ("!", "yellow"), Level.FAILURE: ("✗", "red")}


@click.command()
@click.option("--offline", is_flag=True, help="Skip the checks that need the network.")
@json_option
@click.pass_obj
def doctor(runtime: Runtime, offline: bool, as_json: bool) -> None:
    """Find out what keeps the service from working here, and how to fix it.

    The command checks settings, packages, folder, disk, master key, limits, proxy variables, clock,
    the address of the service, store, schema and secrets, and whether it can connect to a few
    receivers. It changes nothing. Run it as the same user and with the same settings as the
    service, which may be running or not.

    \b
    Examples:
      cuepost doctor
      cuepost doctor --offline --json | jq '.findings[] | select(.level != "ok")'

    Exits with 0 if no check failed (there may be warnings), with 1 if one did, and with 2 if a
    setting is invalid.
    """
    results: list[CheckResult] = []
    for result in runtime.examine(offline=offline):
        results.append(result)
        if not as_json:
            click.echo(_line(result))
    levels = Counter(result.level for result in results)
    healthy = not levels[Level.FAILURE]
    if as_json:
        content = {"healthy": healthy, "findings": [result.as_json() for result in results]}
        click.echo(json.dumps(content, ensure_ascii=False))
    else:
        click.echo(f"\n{levels[Level.FAILURE]} failures, {levels[Level.WARNING]} warnings.")
    sys.exit(0 if healthy else 1)


def _line(result: CheckResult) -> str:
    mark, colour = MARKS[result.level]
    line = f"{click.style(mark, fg=colour)} {result.check}: {result.sentence}"
    return f"{line}\n    {result.fix}" if result.fix else line
