"""The root of the command line."""

import os

import click

import cuepost
from cuepost.interfaces.cli.groups import LoadedLate

OPERATORS = {
    "serve": "serve:serve",
    "api": "serve:api",
    "worker": "serve:worker",
    "demo": "demo:demo",
    "setup": "upkeep:setup",
    "accounts": "accounts:accounts",
    "keys": "keys:keys",
    "audit": "audit:audit",
    "media": "media:media",
    "doctor": "doctor:doctor",
    "backup": "backup:backup",
    "migrate": "upkeep:migrate",
    "rekey": "master_keys:rekey",
    "erase-account": "upkeep:erase_account",
}
DEVELOPERS = {
    "listen": "listen:listen",
    "trigger": "trigger:trigger",
    "deliveries": "deliveries:deliveries",
    "verify": "verify:verify",
    "receiver": "receiver:receiver",
    "mcp": "mcp:mcp",
}


@click.group(
    cls=LoadedLate,
    places=OPERATORS | DEVELOPERS,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(cuepost.__version__, message="cuepost %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """cuepost sends signed webhooks when video projects reach a milestone.

    \b
    Start here:
      cuepost demo             see everything happen, in about ten seconds
      cuepost serve            the whole service; the first start prints your keys
      cuepost listen URL       every event, sent to a receiver on your own machine
      cuepost verify FILE      why a delivery's signature does not fit
      cuepost COMMAND --help   what a command does, with examples

    Operator commands work while the service runs, and print JSON with --json. Settings are
    environment variables that begin with CUEPOST_; 'cuepost serve --help' lists them.

    \b
    Completion in your shell (bash, zsh or fish):
      eval "$(_CUEPOST_COMPLETE=bash_source cuepost)"

    Exit codes: 0 done, 1 could not be done, 2 typed or set wrongly.
    """
    if os.environ.get("NO_COLOR"):
        ctx.color = False
