"""`cuepost serve`, `cuepost api` and `cuepost worker`."""

import sys
from importlib.util import find_spec

import click

import cuepost
from cuepost.interfaces.cli.first_account import FirstAccount, make_first_account, sign_in_rows
from cuepost.interfaces.cli.output import key_values
from cuepost.interfaces.cli.runtime import CommandContext, Runtime
from cuepost.settings import VARIABLES, Settings


class CommandWithSettings(click.Command):
    """A command whose help lists the settings."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Settings (environment variables)"):
            formatter.write_dl(
                [
                    (name, f"{setting.meaning}  [{setting.shown_default}]")
                    for name, setting in VARIABLES.items()
                ]
            )


@click.command(cls=CommandWithSettings)
@click.pass_obj
def serve(runtime: Runtime) -> None:
    """Start the whole service in one process.

    Without any settings the service listens on http://127.0.0.1:8000 and keeps its data in
    ./cuepost-data. The very first start creates an account and prints its keys; they are shown only
    once. Until a user has chosen a password, each start on a terminal prints a one-time sign-in
    link; otherwise it prints the command that creates one. Ctrl-C or SIGTERM stops the service
    after the requests in progress.

    \b
    Examples:
      cuepost serve
      CUEPOST_PORT=9000 cuepost serve
      CUEPOST_DATABASE_URL=postgresql://user:password@host/name cuepost serve
    """
    runtime.serve(_greet_and_set_up, sending=True)


@click.command(cls=CommandWithSettings)
@click.pass_obj
def api(runtime: Runtime) -> None:
    """Start only the API, pages and MCP, without deliveries.

    Any number of processes can share a PostgreSQL database. Create its schema and the first
    account beforehand with 'cuepost setup'.
    """
    runtime.serve(_greet, sending=False)


@click.command(cls=CommandWithSettings)
@click.pass_obj
def worker(runtime: Runtime) -> None:
    """Start only a worker, which sends deliveries.

    Any number of workers can share a PostgreSQL database, on any number of machines. Ctrl-C or
    SIGTERM stops the worker after its attempts in flight; the others take over what is pending.
    """
    runtime.work(_greet_worker)


async def _greet_worker(context: CommandContext) -> None:
    rows = {"Store": context.settings.database_url.shown}
    click.echo(f"{_headline('is delivering')}\n\n{key_values(rows)}\n")


async def _greet(context: CommandContext) -> None:
    click.echo(_greeting(context.settings, {"Pages": f"{context.settings.base_url}/settings"}))


async def _greet_and_set_up(context: CommandContext) -> None:
    on_terminal = sys.stdout.isatty()
    first = await make_first_account(context, with_link=on_terminal)
    steps = _first_steps(first, context.settings.base_url) if first.is_new else ""
    sign_in = await sign_in_rows(context, first, on_terminal=on_terminal)
    click.echo(_greeting(context.settings, sign_in) + steps)


def _greeting(settings: Settings, sign_in: dict[str, str]) -> str:
    rows = sign_in | {
        "API": settings.base_url,
        "Docs": f"{settings.base_url}/docs",
        "MCP": f"{settings.base_url}/mcp",
        "Store": settings.database_url.shown,
    }
    if find_spec("mcp") is None:
        rows["MCP"] = "not installed; pip install 'cuepost[mcp]'"
    return f"{_headline('is running')}\n\n{key_values(rows)}\n"


def _headline(state: str) -> str:
    return click.style(f"cuepost {cuepost.__version__} {state}; Ctrl-C stops it.", bold=True)


def _first_steps(first: FirstAccount, base_url: str) -> str:
    inbox = first.inbox_url or ""
    return (
        "\nThis is the first start. Store these keys now; they are shown only once.\n\n"
        f"{key_values(first.keys() | {'Test inbox': inbox})}\n\n"
        "To create a first webhook that goes to your test inbox:\n\n"
        f"curl {base_url}/v1/webhooks \\\n"
        f"  -H 'Authorization: Bearer {first.api_key}' \\\n"
        "  -H 'Content-Type: application/json' \\\n"
        f"""  -d '{{"url": "{inbox}"}}'\n\n"""
        "Then send it a test event from its page, and open the test inbox to see it arrive.\n"
        "When you have a receiver, register its HTTPS address in the same way.\n"
    )
