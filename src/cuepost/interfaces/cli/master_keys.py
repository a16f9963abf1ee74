"""`cuepost rekey`: encrypts stored secrets with the newest master key, to retire older keys."""

import sys
from typing import Any

import click

from cuepost.application.rekey import KeysInUse
from cuepost.interfaces.cli.output import json_option, print_result, table
from cuepost.interfaces.cli.runtime import CannotRun, CommandContext, use


@click.command()
@click.option("--dry-run", is_flag=True, help="Only count the stored values under each key.")
@json_option
def rekey(dry_run: bool, as_json: bool) -> None:
    """Encrypt every stored secret with the newest master key.

    The newest key is the first one in CUEPOST_MASTER_KEY. Put the new key in front of the old one
    for all processes and restart them, run this command with the same setting, and then remove the
    old key. The service keeps running. The command can be interrupted and run again.

    \b
    Example:
      CUEPOST_MASTER_KEY="$NEW,$OLD" cuepost rekey
    """
    done, keys = use(_counted if dry_run else _rekey)
    content = {"resealed": done, **_content(keys)}
    done_in_words = f"{done} stored values were encrypted with the newest key."
    print_result(as_json, content, f"{done_in_words}\n\n{_table(keys)}\n\n{_advice(keys)}")
    if keys.lost or (keys.older and not dry_run):
        raise CannotRun(_advice(keys))


async def _rekey(context: CommandContext) -> tuple[int, KeysInUse]:
    done = 0
    while count := await context.service.maintenance.master_keys.step():
        done += count
        if sys.stderr.isatty():
            click.echo(f"\rEncrypting … {done}", nl=False, err=True)
    return done, await context.service.maintenance.master_keys.keys_in_use()


async def _counted(context: CommandContext) -> tuple[int, KeysInUse]:
    return 0, await context.service.maintenance.master_keys.keys_in_use()


def _content(keys: KeysInUse) -> dict[str, Any]:
    return {
        "newestKey": keys.newest,
        "storedUnderKey": dict(keys.counts),
        "unknownKeys": sorted(keys.unknown),
    }


def _table(keys: KeysInUse) -> str:
    counts = {keys.newest: 0, **keys.counts}
    rows = [(key_id, _state(keys, key_id), str(count)) for key_id, count in counts.items()]
    return table(("MASTER KEY", "STATE", "STORED VALUES"), rows)


def _state(keys: KeysInUse, key_id: str) -> str:
    if key_id in keys.unknown:
        return "missing"
    return "newest" if key_id == keys.newest else "older"


def _advice(keys: KeysInUse) -> str:
    if keys.lost:
        return (
            f"{keys.lost} stored values are encrypted with a master key that is not in "
            "CUEPOST_MASTER_KEY; add it again, and run 'cuepost rekey' before you remove it."
        )
    if keys.older:
        return (
            f"{keys.older} stored values are encrypted with an older master key; 'cuepost rekey' "
            "encrypts them with the newest."
        )
    return "Everything is encrypted with the newest master key; you can remove the others."
