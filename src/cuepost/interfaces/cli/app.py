"""The root of the command line."""

import os

import click

import cuepost
from cuepost.interfaces.cli.groups import LazyGroup

OPERATORS = {
    "serve": "serve:serve",
    "api": "serve:api",
    "worker": "serve:worker",
    "demo": "demo:demo",
    "setup": "store:setup",
    "accounts": "accounts:accounts",
    "members": "members:members",
    "keys": "keys:keys",
    "audit": "audit:audit",
    "media": "media:media",
    "doctor": "doctor:doctor",
    "backup": "backup:backup",
    "migrate": "store:migrate",
    "rekey": "master_keys:rekey",
    "erase-account": "store:erase_account",
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
    cls=LazyGroup,
    targets=OPERATORS | DEVELOPERS,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(cuepost.__version__, message="cuepost %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """cuepost sends signed webhooks when video projects reach a milestone.

    \b
    Start here:
      cuepost demo             see the whole service at work, in about ten seconds
      cuepost serve            start the service; the first start prints your keys
      cuepost listen URL       forward events to a receiver on your own machine
      cuepost verify FILE      find out why a signature does not verify
      cuepost COMMAND --help   describe a command, with examples

    Operator commands work while the service runs, and print JSON with --json. Settings are
    environment variables that begin with CUEPOST_; 'cuepost serve --help' lists them.

    \b
    Shell completion (bash, zsh or fish):
      eval "$(_CUEPOST_COMPLETE=bash_source cuepost)"

    Exit codes: 0 success, 1 failure, 2 invalid arguments or settings.
    """
    if os.environ.get("NO_COLOR"):
        ctx.color = False
