"""Signing secrets for the developer's tools: from a file, the environment or a prompt, not argv."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import click

from cuepost.interfaces.cli.output import Command
from cuepost.interfaces.cli.runtime import Unusable

VARIABLE = "CUEPOST_WEBHOOK_SECRET"


def secret_option(command: Command) -> Command:
    option: Callable[[Command], Command] = click.option(
        "--secret-file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help=f"A file with the signing secret, or several, one to a line.  [default: ${VARIABLE}]",
    )
    return option(command)


def secrets_given(secret_file: Path | None) -> list[str]:
    """Those in the file, else those in the environment; possibly none."""
    if secret_file is None:
        return _split(os.environ.get(VARIABLE, ""))
    try:
        return _split(secret_file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise Unusable(f"{secret_file} cannot be read as text.") from None


def ask_for_secret() -> list[str]:
    """On a terminal only; what is typed is not shown."""
    if not sys.stdin.isatty():
        raise Unusable(f"No signing secret: set {VARIABLE}, or name a file with --secret-file.")
    return [str(click.prompt("Signing secret", hide_input=True, err=True)).strip()]


def _split(text: str) -> list[str]:
    return [each.strip() for each in text.replace(",", "\n").splitlines() if each.strip()]
