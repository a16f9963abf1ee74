"""The root of the command line."""

import os

import click

import cuepost
from cuepost.doors.cli.accounts import accounts
from cuepost.doors.cli.backup import backup
from cuepost.doors.cli.deliveries import deliveries
from cuepost.doors.cli.demo import demo
from cuepost.doors.cli.groups import InOrder
from cuepost.doors.cli.keys import keys
from cuepost.doors.cli.listen import listen
from cuepost.doors.cli.mcp import mcp
from cuepost.doors.cli.media import media
from cuepost.doors.cli.receiver import receiver
from cuepost.doors.cli.serve import api, serve, worker
from cuepost.doors.cli.trigger import trigger
from cuepost.doors.cli.upkeep import erase_account, migrate, setup
from cuepost.doors.cli.verify import verify


@click.group(cls=InOrder, context_settings={"help_option_names": ["-h", "--help"]})
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


OPERATORS = (
    *(serve, api, worker, demo, setup, accounts, keys, media),
    *(backup, migrate, erase_account),
)
DEVELOPERS = (listen, trigger, deliveries, verify, receiver, mcp)

for command in OPERATORS + DEVELOPERS:
    cli.add_command(command)
