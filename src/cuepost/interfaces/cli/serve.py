"""`cuepost serve`, `cuepost api` and `cuepost worker`: start, and say where."""

import sys
from importlib.util import find_spec

import click

import cuepost
from cuepost.interfaces.cli.first_account import FirstAccount, make_first_account, sign_in_hints
from cuepost.interfaces.cli.output import facts
from cuepost.interfaces.cli.runtime import Opened, Runtime
from cuepost.settings import VARIABLES, Settings


class Configured(click.Command):
    """A command whose help ends with the settings."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Settings, from environment variables"):
            formatter.write_dl(
                [
                    (name, f"{setting.meaning}  [{setting.shown_default}]")
                    for name, setting in VARIABLES.items()
                ]
            )


@click.command(cls=Configured)
@click.pass_obj
def serve(runtime: Runtime) -> None:
    """Start the whole service in one process.

    Without any settings it listens on http://127.0.0.1:8000 and keeps everything in
    ./cuepost-data. The very first start makes an account and prints its keys, once. As long as
    nobody has chosen a password, each start on a terminal prints a link that signs in once, and
    elsewhere the command that makes one. Ctrl-C or SIGTERM ends it after the requests that are
    under way.

    \b
    Examples:
      cuepost serve
      CUEPOST_PORT=9000 cuepost serve
      CUEPOST_DATABASE_URL=postgresql://user:password@host/name cuepost serve
    """
    runtime.serve(_greet_and_set_up, sending=True)


@click.command(cls=Configured)
@click.pass_obj
def api(runtime: Runtime) -> None:
    """Start the API half alone.

    Any number of them can share a PostgreSQL; make its schema and the first account beforehand
    with 'cuepost setup'.
    """
    runtime.serve(_greet, sending=False)


@click.command(cls=Configured)
@click.pass_obj
def worker(runtime: Runtime) -> None:
    """Start the delivery half alone.

    Any number of them can share a PostgreSQL, on any number of machines. Ctrl-C or SIGTERM ends
    it after the attempts that are in flight; what waits is left to the others.
    """
    runtime.work(_greet_worker)


async def _greet_worker(opened: Opened) -> None:
    known = {"Store": opened.settings.database_url.shown}
    click.echo(f"{_running('is delivering')}\n\n{facts(known)}\n")


async def _greet(opened: Opened) -> None:
    click.echo(_where(opened.settings, {"Pages": f"{opened.settings.base_url}/settings"}))


async def _greet_and_set_up(opened: Opened) -> None:
    on_terminal = sys.stdout.isatty()
    first = await make_first_account(opened, with_link=on_terminal)
    steps = _first_steps(first, opened.settings.base_url) if first.is_new else ""
    way_in = await sign_in_hints(opened, first, on_terminal=on_terminal)
    click.echo(_where(opened.settings, way_in) + steps)


def _where(settings: Settings, way_in: dict[str, str]) -> str:
    known = way_in | {
        "API": settings.base_url,
        "Docs": f"{settings.base_url}/docs",
        "MCP": f"{settings.base_url}/mcp",
        "Store": settings.database_url.shown,
    }
    if find_spec("mcp") is None:
        known["MCP"] = "not installed; pip install 'cuepost[mcp]'"
    return f"{_running('is running')}\n\n{facts(known)}\n"


def _running(what_it_does: str) -> str:
    return click.style(f"cuepost {cuepost.__version__} {what_it_does}; Ctrl-C stops it.", bold=True)


def _first_steps(first: FirstAccount, base_url: str) -> str:
    return (
        "\nThis is the first start. Keep these keys; they are shown this once.\n\n"
        f"{facts(first.keys())}\n\n"
        "A first webhook, ready to paste:\n\n"
        f"curl {base_url}/v1/webhooks \\\n"
        f"  -H 'Authorization: Bearer {first.api_key}' \\\n"
        "  -H 'Content-Type: application/json' \\\n"
        """  -d '{"url": "https://example.com/cuepost"}'\n"""
    )
