"""`cuepost backup`: a copy of the embedded store, and what else has to be kept."""

import sys
from pathlib import Path

import click

from cuepost.interfaces.cli.output import facts, json_option, tell
from cuepost.interfaces.cli.runtime import BackedUp, Runtime

MASTER_KEY = "CUEPOST_MASTER_KEY"
MEBIBYTE = 1024 * 1024


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@json_option
@click.pass_obj
def backup(runtime: Runtime, file: Path, as_json: bool) -> None:
    """Copy the embedded store to FILE, while the service runs.

    The copy is the store as it was at one moment: everything that was acknowledged before the
    command began is in it. It is checked, only its owner may read it, and a file that is there
    already is never overwritten. To restore, stop the service and put the copy in the place of
    the store; docs/operations.md says how.

    The master key is not in it, nor are the files of exports: keep them too. For PostgreSQL use
    pg_dump.

    \b
    Example:
      cuepost backup "/backups/cuepost-$(date +%F).sqlite3"
    """
    made = runtime.back_up(file.absolute(), _show_progress)
    tell(as_json, _content(made), _words(made))


def _content(made: BackedUp) -> dict[str, object]:
    return {
        "file": str(made.file),
        "sizeBytes": made.size_bytes,
        "keepToo": {"masterKey": _key_place(made), "media": made.media_url},
    }


def _words(made: BackedUp) -> str:
    kept = {"Master key": _key_place(made), "Media": made.media_url}
    return (
        f"Copied the store to {made.file} ({made.size_bytes / MEBIBYTE:.1f} MiB).\n\n"
        f"These are not in it; keep them too:\n\n{facts(kept)}\n\n"
        "Without the master key nobody can use the signing secrets in the copy."
    )


def _key_place(made: BackedUp) -> str:
    return str(made.master_key_file or MASTER_KEY)


def _show_progress(done: int, total: int) -> None:
    """A line that counts on a terminal; nothing elsewhere."""
    if sys.stderr.isatty():
        share = 100 * done // max(total, 1)
        click.echo(f"\rCopying … {share} %", nl=done == total, err=True)
