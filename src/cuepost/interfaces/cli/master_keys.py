"""`cuepost rekey`: which master keys are in use, and how one is retired."""

import sys
from typing import Any

import click

from cuepost.application.rekey import KeysInUse
from cuepost.interfaces.cli.output import json_option, table, tell
from cuepost.interfaces.cli.runtime import CannotRun, Opened, use


@click.command()
@click.option("--dry-run", is_flag=True, help="Only count what is stored under each key.")
@json_option
def rekey(dry_run: bool, as_json: bool) -> None:
    """Seal every stored secret with the newest master key.

    The newest is the first of CUEPOST_MASTER_KEY. Give all processes the new key in front of the
    old one and restart them, run this command with the same setting, and then take the old key
    away. The service goes on meanwhile. It can be interrupted and started again.

    \b
    Example:
      CUEPOST_MASTER_KEY="$NEW,$OLD" cuepost rekey
    """
    done, keys = use(_counted if dry_run else _rekey)
    content = {"resealed": done, **_content(keys)}
    done_in_words = f"{done} stored values were sealed with the newest key."
    tell(as_json, content, f"{done_in_words}\n\n{_table(keys)}\n\n{_advice(keys)}")
    if keys.lost or (keys.older and not dry_run):
        raise CannotRun(_advice(keys))


async def _rekey(opened: Opened) -> tuple[int, KeysInUse]:
    done = 0
    while count := await opened.service.maintenance.master_keys.step():
        done += count
        if sys.stderr.isatty():
            click.echo(f"\rSealing … {done}", nl=False, err=True)
    return done, await opened.service.maintenance.master_keys.keys_in_use()


async def _counted(opened: Opened) -> tuple[int, KeysInUse]:
    return 0, await opened.service.maintenance.master_keys.keys_in_use()


def _content(keys: KeysInUse) -> dict[str, Any]:
    return {
        "newestKey": keys.newest,
        "storedUnderKey": dict(keys.counts),
        "unknownKeys": sorted(keys.unknown),
    }


def _table(keys: KeysInUse) -> str:
    counts = {keys.newest: 0, **keys.counts}
    rows = [(key_id, _state(keys, key_id), str(count)) for key_id, count in counts.items()]
    return table(("MASTER KEY", "STATE", "STORED UNDER IT"), rows)


def _state(keys: KeysInUse, key_id: str) -> str:
    if key_id in keys.unknown:
        return "not given"
    return "newest" if key_id == keys.newest else "older"


def _advice(keys: KeysInUse) -> str:
    if keys.lost:
        return (
            f"{keys.lost} stored values are under a master key that CUEPOST_MASTER_KEY does not "
            "have; add it again, and run 'cuepost rekey' before it is taken away."
        )
    if keys.older:
        return (
            f"{keys.older} stored values are under an older master key: 'cuepost rekey' seals them "
            "with the newest."
        )
    return "Everything is under the newest master key; others can be taken away."
