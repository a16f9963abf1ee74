"""Reads signing secrets from a file, the environment or a prompt, never from arguments."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import click

from cuepost.interfaces.cli.output import Command
from cuepost.interfaces.cli.runtime import InvalidInput

VARIABLE = "CUEPOST_WEBHOOK_SECRET"


def secret_option(command: Command) -> Command:
    option: Callable[[Command], Command] = click.option(
        "--secret-file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help=f"A file with signing secrets, one per line.  [default: ${VARIABLE}]",
    )
    return option(command)


def read_secrets(secret_file: Path | None) -> list[str]:
    """The secrets in the file, or else in the environment; may be empty."""
    if secret_file is None:
        return _split(os.environ.get(VARIABLE, ""))
    try:
        return _split(secret_file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise InvalidInput(f"{secret_file} cannot be read as text.") from None


def prompt_for_secret() -> list[str]:
    """Prompt without echo; only possible on a terminal."""
    if not sys.stdin.isatty():
        raise InvalidInput(f"No signing secret: set {VARIABLE} or use --secret-file.")
    return [str(click.prompt("Signing secret", hide_input=True, err=True)).strip()]


def _split(text: str) -> list[str]:
    return [each.strip() for each in text.replace(",", "\n").splitlines() if each.strip()]
