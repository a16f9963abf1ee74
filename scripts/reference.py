"""Writes docs/reference from the code; with --check it only says whether the pages are current."""

import argparse
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from cuepost.doors.cli import cli
from cuepost.settings import CLIENT_VARIABLES, PREFIX, VARIABLES, Setting

FOLDER = Path(__file__).parents[1] / "docs" / "reference"
MADE_BY = "<!-- Made by scripts/reference.py; change the code instead, and run it again. -->"
HELP_WIDTH = 88

SETTINGS_PAGE = """\
{made_by}

# Settings

Settings are environment variables. Each begins with `{prefix}`; a variable with that beginning that
is not in this list, or a value that cannot be used, stops the start with one line that says which
and why, and exit code 2. `{prefix}TEST_…` is left to tests.

| variable | default | written as | meaning |
| --- | --- | --- | --- |
{rows}

## Of the developer's tools

`cuepost verify`, `receiver check`, `trigger` and `deliveries` read these; a service leaves them
alone.

| variable | default | written as | meaning |
| --- | --- | --- | --- |
{client_rows}

## In Kubernetes

In Kubernetes a service named `cuepost` puts variables such as `CUEPOST_PORT=tcp://…` into every
container beside it; switch that off with `enableServiceLinks: false`.
"""

CLI_PAGE = """\
{made_by}

# Command line

Exit codes: 0 done, 1 could not be done, 2 typed or set wrongly. What goes wrong is said in one line
on standard error. Settings come from the environment: see [settings](settings.md).

{sections}
"""


def settings_page() -> str:
    return SETTINGS_PAGE.format(
        made_by=MADE_BY,
        prefix=PREFIX,
        rows=_rows(VARIABLES),
        client_rows=_rows(CLIENT_VARIABLES),
    )


def _rows(variables: Mapping[str, Setting]) -> str:
    return "\n".join(
        f"| `{name}` | {setting.shown_default} | {setting.kind.expected} | {setting.meaning} |"
        for name, setting in variables.items()
    )


def cli_page() -> str:
    root = cli.make_context("cuepost", [], terminal_width=HELP_WIDTH, resilient_parsing=True)
    return CLI_PAGE.format(made_by=MADE_BY, sections="\n\n".join(sections(root)))


def sections(context: click.Context) -> Iterator[str]:
    """The help of a command as a terminal shows it, then that of the commands below it."""
    yield f"## `{context.command_path}`\n\n```text\n{help_of(context)}\n```"
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            command = context.command.commands[name]
            yield from sections(click.Context(command, parent=context, info_name=name))


def help_of(context: click.Context) -> str:
    # The settings have a page of their own.
    return context.get_help().partition("\nSettings, from environment variables:")[0].rstrip()


PAGES = {"settings.md": settings_page, "cli.md": cli_page}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, fail when stale")
    only_check: bool = parser.parse_args().check
    stale = []
    for name, render in PAGES.items():
        path, page = FOLDER / name, render()
        if path.exists() and path.read_text(encoding="utf-8") == page:
            continue
        stale.append(name)
        if not only_check:
            FOLDER.mkdir(parents=True, exist_ok=True)
            path.write_text(page, encoding="utf-8")
    for name in stale:
        print(f"docs/reference/{name} {'is stale: run scripts/reference.py' * only_check}".rstrip())
    return 1 if only_check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
