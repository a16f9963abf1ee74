"""`cuepost backup`: copies the embedded store and lists what else to back up."""

import sys
from pathlib import Path

import click

from cuepost.interfaces.cli.output import json_option, key_values, print_result
from cuepost.interfaces.cli.runtime import Backup, Runtime

MASTER_KEY = "CUEPOST_MASTER_KEY"
MEBIBYTE = 1024 * 1024


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@json_option
@click.pass_obj
def backup(runtime: Runtime, file: Path, as_json: bool) -> None:
    """Copy the embedded store to FILE, while the service runs.

    The copy is a consistent snapshot: it contains everything that was acknowledged before the
    command started. Its integrity is checked, only its owner may read it, and an existing file is
    never overwritten. To restore, stop the service and replace the store with the copy;
    docs/operations.md describes the steps.

    The copy contains neither the master key nor exported media files: back them up as well. For
    PostgreSQL use pg_dump.

    \b
    Example:
      cuepost backup "/backups/cuepost-$(date +%F).sqlite3"
    """
    made = runtime.back_up(file.absolute(), _show_progress)
    print_result(as_json, _content(made), _words(made))


def _content(made: Backup) -> dict[str, object]:
    return {
        "file": str(made.file),
        "sizeBytes": made.size_bytes,
        "keepToo": {"masterKey": _key_place(made), "media": made.media_url},
    }


def _words(made: Backup) -> str:
    kept = {"Master key": _key_place(made), "Media": made.media_url}
    return (
        f"Copied the store to {made.file} ({made.size_bytes / MEBIBYTE:.1f} MiB).\n\n"
        f"It does not contain these; back them up as well:\n\n{key_values(kept)}\n\n"
        "Without the master key the signing secrets in the copy cannot be decrypted."
    )


def _key_place(made: Backup) -> str:
    return str(made.master_key_file or MASTER_KEY)


def _show_progress(done: int, total: int) -> None:
    """Show a progress line if standard error is a terminal."""
    if sys.stderr.isatty():
        share = 100 * done // max(total, 1)
        click.echo(f"\rCopying … {share} %", nl=done == total, err=True)
